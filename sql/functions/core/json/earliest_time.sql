create or replace function agui_internal.earliest_time()
returns timestamptz
language sql
immutable
parallel safe
return timestamptz '2015-01-01 00:00:00+00';

comment on function agui_internal.earliest_time() is
    'The earliest time at which an event is recorded: before it there were no agents, so an earlier time '
    'comes from a clock that was not set. events.EarliestTime is the same in Go.';

revoke execute on function agui_internal.earliest_time() from public;
