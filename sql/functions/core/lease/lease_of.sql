create or replace function agui_internal.lease_of(has_heartbeat boolean, seen_at timestamptz, last_seen_at timestamptz)
returns interval
language sql
stable
parallel safe
return case
    -- Events after the heartbeats have ended come from a writer that sends none.
    when has_heartbeat and last_seen_at < seen_at + agui_internal.heartbeat_lease() then agui_internal.heartbeat_lease()
    else agui_internal.lease()
end;

comment on function agui_internal.lease_of(boolean, timestamptz, timestamptz) is
    'The lease of a run in progress, given run.has_heartbeat, run.seen_at and its last sign of '
    'life (agui_internal.last_seen_at).';

revoke execute on function agui_internal.lease_of(boolean, timestamptz, timestamptz) from public;
