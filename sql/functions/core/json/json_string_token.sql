-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_string_token(token text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(token, '\') = 0 then token
    else agui_internal.json_string_token_escapes(token)
end;

comment on function agui_internal.json_string_token(text) is
    'A JSON string of guarded JSON text in its one usual spelling, quotes included: equal strings give equal texts.';

revoke execute on function agui_internal.json_string_token(text) from public;
