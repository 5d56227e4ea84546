-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.json_string_text_escapes(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    decoded constant text := token::json #>> '{}';
begin
    if strpos(replace(decoded, '\u005c', ''), '\') > 0 then
        return decoded;
    end if;
    return replace(decoded, '\u005c', '\');
end
$function$;

comment on function agui_internal.json_string_text_escapes(text) is 'The part of agui_internal.json_string_text for a string that has a backslash.';

revoke execute on function agui_internal.json_string_text_escapes(text) from public;
