create or replace function agui_internal.json_element_bytes()
returns int
language sql
immutable
parallel safe
return 32;

comment on function agui_internal.json_element_bytes() is
    'What each comma and each opening bracket of a document counts in agui_internal.json_size, besides the byte that it is.';

revoke execute on function agui_internal.json_element_bytes() from public;
