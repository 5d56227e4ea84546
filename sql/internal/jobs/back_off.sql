create or replace function agui_internal.back_off(attempts int)
returns timestamptz
language sql
volatile
parallel safe
return clock_timestamp() + least(interval '1 minute' * 2 ^ least(attempts - 1, 20), interval '1 day');

comment on function agui_internal.back_off(int) is
    'When a job tries a run next that it has tried so often: after a minute, then after twice as long each time, a day at most.';

revoke execute on function agui_internal.back_off(int) from public;
