create or replace function agui_internal.plain_event_count(events json)
returns int
language sql
immutable
parallel safe
-- Without a subquery it is inlined, so a single token, as live streams bring them, needs no query.
-- Neither, usually, do events that need further checks in any case.
return case
    when agui_internal.is_single_token_event(events) then 1
    when json_typeof(events) = 'array' and strpos(events::text, '"RUN_') = 0 then agui_internal.count_plain_events(events)
end;

comment on function agui_internal.plain_event_count(json) is
    'The number of these events if they are evidently valid and do not belong to the life cycle of '
    'their run; null if agui_internal.inspect_events has to check.';

revoke execute on function agui_internal.plain_event_count(json) from public;
