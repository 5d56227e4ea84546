-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_string_member(document json, name text)
returns text
language sql
immutable
parallel safe
return case when json_typeof(document -> name) = 'string' then (document -> name)::text end;

comment on function agui_internal.json_string_member(json, text) is
    'A member of a JSON object (guarded) that is a string, as JSON; null for any other value.';

revoke execute on function agui_internal.json_string_member(json, text) from public;
