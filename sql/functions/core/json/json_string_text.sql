-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_string_text(token text)
returns text
language sql
immutable
parallel safe
return case
    when not token ^@ '"' then null
    when strpos(token, '\') = 0 then substr(token, 2, length(token) - 2)
    else agui_internal.json_string_text_escapes(token)
end;

comment on function agui_internal.json_string_text(text) is
    'The text of a JSON string of guarded JSON text; still guarded if it contains \u0000 or a lone '
    'surrogate, which text cannot contain. Null for a value that is not a string.';

revoke execute on function agui_internal.json_string_text(text) from public;
