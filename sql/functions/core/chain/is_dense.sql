create or replace function agui_internal.is_dense(events json)
returns boolean
language sql
immutable
parallel safe
-- Tabs and line ends occur only between values. Spaces also occur in strings, so a dense array is
-- sometimes reported as not dense.
return events::text !~ '[\t\n\r]|[}] | [{]|^ | $';

comment on function agui_internal.is_dense(json) is
    'Whether an array of events evidently has only commas between the events, the form that '
    'agui_internal.chain_events produces.';

revoke execute on function agui_internal.is_dense(json) from public;
