-- Not strict, and without a query in it, so that it is inlined where it is called.
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
    'What a JSON string of guarded JSON text says; stays guarded when it holds \u0000 or a lone surrogate, which text cannot hold. '
    'Null for a value that is not a string.';

revoke execute on function agui_internal.json_string_text(text) from public;
