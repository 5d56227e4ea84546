create or replace function agui.webhooks()
returns setof agui.webhook_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list webhooks');
    return query
    select
        known.name, known.url, known.scope, known.kinds, known.enabled, known.disabled_because, known.created_at, known.created_by,
        state.to_send, state.failed, state.retrying,
        case when known.old_secret_until > clock_timestamp() then known.old_secret_until end,
        state.is_elsewhere
    from agui.webhook as known
    join agui_internal.webhook_states() as state using (name)
    order by known.name;
end
$$;

comment on function agui.webhooks() is
    'Returns the webhooks in the order of their names, without their secrets. Requires agui_maintainer.';

revoke execute on function agui.webhooks() from public;
