-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_string_text_escapes(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    decoded constant pg_catalog.text := token::pg_catalog.json operator(pg_catalog.#>>) '{}';
begin
    if pg_catalog.strpos(pg_catalog.replace(decoded, '\u005c', ''), '\') operator(pg_catalog.>) 0 then
        return decoded;
    end if;
    return pg_catalog.replace(decoded, '\u005c', '\');
end
$function$;

comment on function agui_internal.json_string_text_escapes(text) is 'The part of agui_internal.json_string_text for a string that has a backslash.';

revoke execute on function agui_internal.json_string_text_escapes(text) from public;
