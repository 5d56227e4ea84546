-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_index(token text)
returns int
language sql
immutable
parallel safe
return case when token ~ '^(0|[1-9][0-9]{0,8})$' then token::int end;

comment on function agui_internal.json_index(text) is
    'A token of a JSON pointer as the index of an array item; null if it is none.';

revoke execute on function agui_internal.json_index(text) from public;
