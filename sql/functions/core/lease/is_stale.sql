create or replace function agui_internal.is_stale(run agui.run)
returns boolean
language sql
stable
parallel safe
return run.status = 'running' and agui_internal.alive_until(run) < clock_timestamp();

comment on function agui_internal.is_stale(agui.run) is
    'Whether a run is in progress without a sign of life of its writer within the lease.';

revoke execute on function agui_internal.is_stale(agui.run) from public;
