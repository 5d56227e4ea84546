-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.json_string_token_escapes(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
begin
    return to_json(token::json #>> '{}')::text;
end
$function$;

comment on function agui_internal.json_string_token_escapes(text) is 'The part of agui_internal.json_string_token for a string that has a backslash.';

revoke execute on function agui_internal.json_string_token_escapes(text) from public;
