create or replace function agui_internal.is_dense_call(events json, plain_count int)
returns boolean
language sql
immutable
parallel safe
return case
    when plain_count = 1 then left(events::text, 2) = '[{' and right(events::text, 2) = '}]'
    else plain_count > 1
end;

comment on function agui_internal.is_dense_call(json, int) is
    'Whether an array of events has only commas between the events, the form that '
    'agui_internal.chain_events produces. plain_count is its agui_internal.plain_event_count.';

revoke execute on function agui_internal.is_dense_call(json, int) from public;
