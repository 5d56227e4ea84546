-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui.json_string_text(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    decoded text;
begin
    if left(token, 1) <> '"' then
        return null;
    elsif strpos(token, '\') = 0 then
        return substr(token, 2, length(token) - 2);
    end if;

    decoded := token::json #>> '{}';
    if strpos(replace(decoded, '\u005c', ''), '\') > 0 then
        return decoded;
    end if;
    return replace(decoded, '\u005c', '\');
end
$function$;

comment on function agui.json_string_text(text) is
    'What a JSON string of guarded JSON text says; stays guarded when it holds \u0000 or a lone surrogate, which text cannot hold. '
    'Null for a value that is not a string.';

revoke execute on function agui.json_string_text(text) from public;
