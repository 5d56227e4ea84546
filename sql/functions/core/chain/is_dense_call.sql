create or replace function agui_internal.is_dense_call(events json, plain_count int)
returns boolean
language sql
immutable
parallel safe
-- Each of several plain events begins with its type, and "type" occurs nowhere else. So if there is
-- a last part after as many separators, they separate the events. A single event may contain the
-- separator; its last part ends the array too. These functions are fast: they do not look at each
-- character of a long text.
return starts_with(events::text, '[{')
    and split_part(events::text, '},{"type":"', case when plain_count = 1 then -1 else plain_count end) like '%}]';

comment on function agui_internal.is_dense_call(json, int) is
    'Whether an array of plain events has only commas between the events, the form that '
    'agui_internal.chain_events produces. plain_count is its agui_internal.plain_event_count. '
    'Faster than agui_internal.is_dense.';

revoke execute on function agui_internal.is_dense_call(json, int) from public;
