create or replace function agui_internal.is_dense(events json)
returns boolean
language sql
immutable
parallel safe
-- Tabs and line ends are between values alone; spaces may be in strings, too, so now and then this says false of a dense one.
return events::text !~ '[\t\n\r]|[}] | [{]|^ | $';

comment on function agui_internal.is_dense(json) is
    'Whether it is plain to see that an array of events has commas and nothing else between them, as agui_internal.chain_events makes it.';

revoke execute on function agui_internal.is_dense(json) from public;
