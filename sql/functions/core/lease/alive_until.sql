create or replace function agui_internal.alive_until(run agui.run)
returns timestamptz
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select greatest(last.seen_at, agui_internal.reachable_since())
        + agui_internal.lease_of(run.has_heartbeat, run.seen_at, last.seen_at)
    from (select agui_internal.last_seen_at(run) as seen_at offset 0) as last
$$;

comment on function agui_internal.alive_until(agui.run) is
    'The end of the lease of a run in progress, unless its writer gives another sign of life. The '
    'lease counts from the last sign of life or, after an outage, from when writers could reach '
    'the server.';

revoke execute on function agui_internal.alive_until(agui.run) from public;
