create or replace function agui_internal.webhook_states()
returns setof agui_internal.webhook_state
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    own record;
begin
    select * into own from agui_internal.monitored_keys();
    if own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        return query
        select
            known.name, known.enabled, known.disabled_because, waiting.to_send, waiting.retrying, given_up.failed,
            known.sends_from is distinct from agui_internal.database_identity()
        from agui.webhook as known
        cross join lateral (
            select count(*) as to_send, count(request.outcome) as retrying
            from agui_internal.webhook_request as request
            where request.webhook = known.name and request.next_at is not null
        ) as waiting
        cross join lateral (
            select count(*) as failed
            from agui_internal.webhook_request as request
            where request.webhook = known.name and request.body is not null and request.outcome is not null and request.next_at is null
        ) as given_up
        order by known.name;
    end if;
end
$$;

comment on function agui_internal.webhook_states() is
    'Returns how the webhooks do, without URLs and secrets, to a role that sees all scopes, or is a '
    'member of pg_monitor; to others none.';

revoke execute on function agui_internal.webhook_states() from public;
