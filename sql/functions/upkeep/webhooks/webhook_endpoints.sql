create or replace function agui_internal.webhook_endpoints(at timestamptz)
returns setof agui_internal.webhook_endpoint
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    return query
    select
        known.name, known.url, known.secret, known.scope, known.kinds, known.enabled, known.created_at, place.position,
        exists (select from agui_internal.webhook_request as request where request.webhook = known.name and request.next_at <= webhook_endpoints.at),
        case when known.old_secret_until > webhook_endpoints.at then known.old_secret end,
        known.sends_from is distinct from agui_internal.database_identity()
    from agui.webhook as known
    join agui_internal.webhook_position as place on place.webhook = known.name
    order by known.name;
end
$$;

comment on function agui_internal.webhook_endpoints(timestamptz) is
    'The webhooks with their secrets, and whether they have requests to send at a time.';

revoke execute on function agui_internal.webhook_endpoints(timestamptz) from public;
