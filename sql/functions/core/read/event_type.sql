create or replace function agui_internal.event_type(payload json)
returns text
language sql
immutable
strict
parallel safe
-- The operators of PostgreSQL on json fail if an event contains \u0000 or half an emoji. Such
-- events contain a backslash.
return case
    when strpos(payload::text, '\') = 0 then payload ->> 'type'
    else agui_internal.json_guard(payload::text)::json ->> 'type'
end;

comment on function agui_internal.event_type(json) is
    'The type of an event, whatever else it contains.';

revoke execute on function agui_internal.event_type(json) from public;
