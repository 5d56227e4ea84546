create or replace function agui_internal.back_off(attempts int)
returns timestamptz
language sql
volatile
parallel safe
return clock_timestamp() + least(interval '1 minute' * 2 ^ least(attempts - 1, 20), interval '1 day');

comment on function agui_internal.back_off(int) is
    'The time of the next attempt at a run after so many attempts: one minute later, doubled with '
    'each attempt, at most one day.';

revoke execute on function agui_internal.back_off(int) from public;
