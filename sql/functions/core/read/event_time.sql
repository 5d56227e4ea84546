create or replace function agui_internal.event_time(recorded_at timestamptz, earlier_us int)
returns timestamptz
language sql
stable
parallel safe
return case when earlier_us is null then recorded_at else recorded_at - earlier_us * interval '1 microsecond' end;

comment on function agui_internal.event_time(timestamptz, int) is
    'The time when an event was appended, given recorded_at of its batch and its item of '
    'earlier_us.';

revoke execute on function agui_internal.event_time(timestamptz, int) from public;
