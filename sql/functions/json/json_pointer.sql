-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui.json_pointer(pointer text)
returns text[]
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    tokens text[];
begin
    if pointer = '' then
        return '{}';
    elsif left(pointer, 1) <> '/' or pointer ~ '~([^01]|$)' then
        return null;
    elsif pointer = '/' then
        return array[''];
    end if;

    tokens := string_to_array(substr(pointer, 2), '/');
    if strpos(pointer, '~') > 0 then
        for position in 1 .. cardinality(tokens) loop
            tokens[position] := replace(replace(tokens[position], '~1', '/'), '~0', '~');
        end loop;
    end if;
    return tokens;
end
$function$;

comment on function agui.json_pointer(text) is
    'The tokens of a JSON pointer (RFC 6901), unescaped; no token: the whole document. Null when it is not a valid pointer.';

revoke execute on function agui.json_pointer(text) from public;
