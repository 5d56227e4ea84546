create or replace function agui_internal.json_too_deep(document json, max_depth int)
returns boolean
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- What splitting text takes is a multiple of its size, so a large document is read in slices.
    slice_bytes constant int := 65536;
    -- Depth counts after so many rounds that take the innermost brackets away.
    rounds      constant int := 8;
    bytes       bytea;
    offset_now  int := 1;
    slice       text;
    in_string   boolean := false;  -- whether the slice begins in a string
    parts       int;
    brackets    text;
    few         text;
    depth       int := 0;          -- where the slice begins
    height      int;               -- how far the slice rises above it at most
begin
    -- More levels than max_depth have more than half as many brackets of one kind. Most documents
    -- have fewer.
    if (
        select given.bytes not like all (array[
            (repeat('%[', max_depth / 2 + 1) || '%')::bytea, (repeat('%{', max_depth / 2 + 1) || '%')::bytea
        ])
        from (select agui_internal.json_bytes(document) as bytes offset 0) as given
    ) then
        return false;
    end if;

    bytes := agui_internal.json_bytes(document);
    while offset_now <= octet_length(bytes) loop
        -- Each byte is a character, also half of one.
        slice := convert_from(substring(bytes from offset_now for slice_bytes), 'LATIN1');
        if (length(slice) - length(rtrim(slice, '\'))) % 2 = 1 then
            slice := slice || convert_from(substring(bytes from offset_now + length(slice) for 1), 'LATIN1');
        end if;
        offset_now := offset_now + length(slice);
        if strpos(slice, '\') > 0 then
            slice := replace(replace(slice, '\\', ''), '\"', '');
        end if;

        -- Outside of strings (every second part between quotes) only brackets are kept.
        select
            count(*),
            string_agg(translate(part, E'[]{},: 0123456789.-etrufalsnE+\t\n\r', '[][]'), '' order by position) filter (where position % 2 = 1)
        into parts, brackets
        from string_to_table(case when in_string then '"' || slice else slice end, '"') with ordinality as split (part, position);
        in_string := parts % 2 = 0;

        few := brackets;
        for round in 1 .. rounds loop
            exit when few = '';
            few := replace(few, '[]', '');
        end loop;
        height := agui_internal.bracket_height(few);
        if depth + height + rounds > max_depth and depth + agui_internal.bracket_height(brackets) > max_depth then
            return true;
        end if;
        depth := depth + 2 * length(replace(few, ']', '')) - length(few);
    end loop;
    return false;
end
$$;

comment on function agui_internal.json_too_deep(json, int) is
    'Whether arrays and objects of a valid JSON document are nested more than max_depth levels '
    'deep. It takes little more memory than the document.';

revoke execute on function agui_internal.json_too_deep(json, int) from public;
