create or replace function agui_internal.json_too_deep(document text, max_depth int)
returns boolean
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    brackets text;
begin
    -- Depth takes brackets: most documents have too few, and this says so without taking them apart.
    if octet_length(document) - octet_length(replace(replace(document, '[', ''), '{', '')) <= max_depth then
        return false;
    end if;

    -- Outside of strings (every second part between quotes) nothing but brackets is kept.
    select string_agg(part, '' order by position)
    into brackets
    from string_to_table(replace(replace(document, '\\', ''), '\"', ''), '"') with ordinality as split (part, position)
    where position % 2 = 1;
    brackets := translate(brackets, E'{}:, \t\n\r0123456789+-.eEtrufalsn', '[]');

    -- Each round takes the innermost level away.
    for level in 1 .. max_depth loop
        brackets := replace(brackets, '[]', '');
        if brackets = '' then
            return false;
        end if;
    end loop;
    return true;
end
$$;

comment on function agui_internal.json_too_deep(text, int) is
    'Whether arrays and objects of a valid JSON document are nested more than max_depth deep.';

revoke execute on function agui_internal.json_too_deep(text, int) from public;
