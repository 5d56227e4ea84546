create or replace function agui_internal.readable(guarded text)
returns text
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
return case
    when strpos(guarded, '\u') = 0 then guarded
    else replace(regexp_replace(guarded, '\\u(0000|d[89a-f][0-9a-f]{2})', U&'\FFFD', 'g'), '\u005c', '\')
end;

comment on function agui_internal.readable(text) is
    'The text of a guarded JSON string (agui_internal.json_string_text) with U+FFFD in place of what text '
    'cannot contain.';

revoke execute on function agui_internal.readable(text) from public;
