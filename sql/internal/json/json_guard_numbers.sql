-- jsonb holds numbers as numeric: 1e131072 is too large for it, and 1e100000 would become a text of 100,001 digits. Numbers beyond
-- what a double can hold become strings that guarded text never has otherwise: those that begin with a backslash and a #.
--
-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.json_guard_numbers(document text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
begin
    -- What stands before a number tells it from the hexadecimal digits of an id, which look like one more often than not.
    if document !~ '(^|[:,[\s])-?[0-9.]+[eE][-+]?[0-9]{3}|[0-9]{250}' then
        return document;
    end if;

    return (
        select string_agg(
            case
                when left(part[1], 1) = '"' then part[1]
                else regexp_replace(
                    part[1],
                    '-?[0-9.]+[eE][-+]?[0-9]{3,}|-?[0-9.]*[0-9]{250}[0-9.]*([eE][-+]?[0-9]+)?',
                    '"\\\\#\&"',
                    'g'
                )
            end,
            ''
            order by position
        )
        from regexp_matches(document, '"(?:[^"\\]|\\.)*"|[^"]+', 'g') with ordinality as token (part, position)
    );
end
$function$;

comment on function agui_internal.json_guard_numbers(text) is
    'Guarded JSON text with numbers beyond the range of a double, or of hundreds of digits, as strings that agui_internal.json_from_jsonb '
    'turns back, so that jsonb accepts it.';

revoke execute on function agui_internal.json_guard_numbers(text) from public;
