create or replace function agui_internal.json_depth(document text)
returns int
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    brackets text;
begin
    -- Outside of strings (every second part between quotes) only brackets are kept. They come first:
    -- translate searches its list of characters from the left.
    select string_agg(translate(part, E'[]{},: 0123456789.-etrufalsnE+\t\n\r', '[][]'), '' order by position)
    into brackets
    from string_to_table(
        case when strpos(document, '\') = 0 then document else replace(replace(document, '\\', ''), '\"', '') end, '"'
    ) with ordinality as split (part, position)
    where position % 2 = 1;

    -- Most of a document is shallow: each of the first rounds removes the innermost level.
    for level in 0 .. 7 loop
        if brackets = '' then
            return level;
        end if;
        brackets := replace(brackets, '[]', '');
    end loop;

    return 8 + agui_internal.bracket_height(brackets);
end
$$;

comment on function agui_internal.json_depth(text) is
    'The nesting depth of arrays and objects in a valid JSON document.';

revoke execute on function agui_internal.json_depth(text) from public;
