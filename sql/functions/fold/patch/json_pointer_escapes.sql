create or replace function agui_internal.json_pointer_escapes(pointer text)
returns text[]
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if pointer ~ '~([^01]|$)' then
        return null;
    end if;
    return array(
        select replace(replace(token.text, '~1', '/'), '~0', '~')
        from string_to_table(substr(pointer, 2), '/') with ordinality as token (text, position)
        order by token.position
    );
end
$function$;

comment on function agui_internal.json_pointer_escapes(text) is 'The part of agui_internal.json_pointer for a pointer that has a ~.';

revoke execute on function agui_internal.json_pointer_escapes(text) from public;
