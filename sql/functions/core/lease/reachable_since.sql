create or replace function agui_internal.reachable_since()
returns timestamptz
language sql
stable
parallel safe
return greatest(
    (select uptime.up_since from agui_internal.uptime as uptime),
    -- A standby has no information about the server that writers reach. Statistics are reset when a
    -- server recovers from a crash, possibly long after its start. If someone resets them by hand,
    -- the only effect is that runs get a longer lease.
    case when not pg_is_in_recovery() then greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time()) end
);

comment on function agui_internal.reachable_since() is
    'Since when writers could reach the server, as far as it is known. No lease counts the time '
    'before.';

revoke execute on function agui_internal.reachable_since() from public;
