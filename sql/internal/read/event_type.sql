create or replace function agui_internal.event_type(payload json)
returns text
language sql
immutable
strict
parallel safe
-- PostgreSQL's operators on json fail where an event holds \u0000 or half an emoji; such events have a backslash somewhere.
return case
    when strpos(payload::text, '\') = 0 then payload ->> 'type'
    else agui_internal.json_guard(payload::text)::json ->> 'type'
end;

comment on function agui_internal.event_type(json) is 'The type of an event, whatever else it holds.';

revoke execute on function agui_internal.event_type(json) from public;
