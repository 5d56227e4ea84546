create or replace function agui.json_string_token(token text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(token, '\') = 0 then token
    else to_json(token::json #>> '{}')::text
end;

comment on function agui.json_string_token(text) is
    'A JSON string of guarded JSON text in its one usual spelling, quotes included: equal strings give equal texts.';

revoke execute on function agui.json_string_token(text) from public;
