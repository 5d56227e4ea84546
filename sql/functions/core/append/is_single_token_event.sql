create or replace function agui_internal.is_single_token_event(events json)
returns boolean
language sql
immutable
parallel safe
-- It is inlined because it uses only built-in functions and no subquery.
return octet_length(events::text) <= 1000
    and strpos(events::text, '\u') = 0
    and strpos(events::text, agui_internal.question_name()) = 0
    and json_typeof(events) = 'array'
    and events -> 1 is null
    and json_typeof(events #> '{0,type}') = 'string'
    and events #>> '{0,type}' not in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR');

comment on function agui_internal.is_single_token_event(json) is
    'Whether this is an array of a single short event that does not belong to the life cycle of '
    'its run, as most live streams bring. If not true, agui_internal.inspect_events has to check.';

revoke execute on function agui_internal.is_single_token_event(json) from public;
