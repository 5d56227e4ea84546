-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_string_token_escapes(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
begin
    return pg_catalog.to_json(token::pg_catalog.json operator(pg_catalog.#>>) '{}')::pg_catalog.text;
end
$function$;

comment on function agui_internal.json_string_token_escapes(text) is 'The part of agui_internal.json_string_token for a string that has a backslash.';

revoke execute on function agui_internal.json_string_token_escapes(text) from public;
