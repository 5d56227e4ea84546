create or replace function agui_internal.plain_event_count(events json)
returns int
language sql
stable
parallel safe
-- Inlined. A single token, as most live streams bring it, is recognized by its text: the only "}"
-- ends the array, so there is one object, without others in it. Setting up an expression takes
-- longer than evaluating it, so there are few functions here.
return case
    when octet_length(events::text) <= 1000
        and events::text like '[{"type":"%}]'
        and events::text not like all (array['[{"type":"RUN\_%', '%}%}%', '%"type"%"type"%', '%\\u%'])
        and strpos(events::text, agui_internal.question_name()) = 0
    then 1
    else agui_internal.count_plain_events(events)
end;

comment on function agui_internal.plain_event_count(json) is
    'The number of these events if they are evidently valid and do not belong to the life cycle of '
    'their run; null if agui_internal.inspect_events has to check.';

revoke execute on function agui_internal.plain_event_count(json) from public;
