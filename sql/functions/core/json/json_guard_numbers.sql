-- jsonb stores numbers as numeric: 1e131072 is too large for it, and 1e100000 would become a text
-- of 100,001 digits. Numbers beyond the range of a double become strings that guarded text never
-- contains otherwise: those that begin with a backslash and a #.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_guard_numbers(document text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
begin
    -- The characters before a number distinguish it from the hexadecimal digits of an id, which
    -- often look like one.
    if document operator(pg_catalog.!~) '(^|[:,[\s])-?[0-9.]+[eE][-+]?[0-9]{3}|[0-9]{250}' then
        return document;
    end if;

    return (
        select pg_catalog.string_agg(
            case
                when part[1] operator(pg_catalog.^@) '"' then part[1]
                else pg_catalog.regexp_replace(
                    part[1],
                    '-?[0-9.]+[eE][-+]?[0-9]{3,}|-?[0-9.]*[0-9]{250}[0-9.]*([eE][-+]?[0-9]+)?',
                    '"\\\\#\&"',
                    'g'
                )
            end,
            ''
            order by position
        )
        from pg_catalog.regexp_matches(document, '"(?:[^"\\]|\\.)*"|[^"]+', 'g') with ordinality as token (part, position)
    );
end
$function$;

comment on function agui_internal.json_guard_numbers(text) is
    'Guarded JSON text with numbers beyond the range of a double, or of hundreds of digits, as strings that agui_internal.json_from_jsonb '
    'turns back, so that jsonb accepts it.';

revoke execute on function agui_internal.json_guard_numbers(text) from public;
