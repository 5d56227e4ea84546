create or replace function agui_internal.json_as_string(value json)
returns text
language sql
immutable
strict
parallel safe
return case
    when value::text ^@ '"' then value::text
    else agui_internal.json_guard(to_json(agui_internal.json_unguard(value::text))::text)
end;

comment on function agui_internal.json_as_string(json) is
    'A JSON value (of guarded JSON text) as a JSON string: itself, or a string that contains its '
    'text.';

revoke execute on function agui_internal.json_as_string(json) from public;
