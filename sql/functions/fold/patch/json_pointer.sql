-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_pointer(pointer text)
returns text[]
language sql
immutable
parallel safe
return case
    when pointer = '' then '{}'::text[]
    when not pointer ^@ '/' then null
    when pointer = '/' then array['']
    when strpos(pointer, '~') = 0 then string_to_array(substr(pointer, 2), '/')
    else agui_internal.json_pointer_escapes(pointer)
end;

comment on function agui_internal.json_pointer(text) is
    'The tokens of a JSON pointer (RFC 6901), unescaped; no token: the whole document. Null if it '
    'is not a valid pointer.';

revoke execute on function agui_internal.json_pointer(text) from public;
