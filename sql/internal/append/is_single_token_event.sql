create or replace function agui_internal.is_single_token_event(events json)
returns boolean
language sql
immutable
parallel safe
-- No function in it but the server's own, and no subquery: so it is inlined.
return octet_length(events::text) <= 1000
    and strpos(events::text, '\u') = 0
    and json_typeof(events) = 'array'
    and events -> 1 is null
    and json_typeof(events #> '{0,type}') = 'string'
    and events #>> '{0,type}' not in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR');

comment on function agui_internal.is_single_token_event(json) is
    'Whether this is an array of a single short event that is no news to the life cycle of its run: most of what live streams bring. '
    'Not true: look closer (agui_internal.inspect_events).';

revoke execute on function agui_internal.is_single_token_event(json) from public;
