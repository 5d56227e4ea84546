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
    -- Outside of strings (every second part between quotes) nothing but brackets is kept.
    select string_agg(part, '' order by position)
    into brackets
    from string_to_table(replace(replace(document, '\\', ''), '\"', ''), '"') with ordinality as split (part, position)
    where position % 2 = 1;
    -- Brackets come first: translate looks for each character from the left.
    brackets := translate(brackets, E'[]{},: 0123456789.-etrufalsnE+\t\n\r', '[][]');

    -- Most of a document is shallow: each of the first rounds takes the innermost level away.
    for level in 0 .. 7 loop
        if brackets = '' then
            return level;
        end if;
        brackets := replace(brackets, '[]', '');
    end loop;

    -- The rest in stretches, each some brackets that open and some that close. One pass, however deep it is.
    return 8 + (
        select coalesce(max(stretch.before + stretch.opens), 0)
        from (
            select
                strpos(part || ']', ']') - 1 as opens,
                coalesce(
                    sum(2 * strpos(part || ']', ']') - 2 - length(part)) over (
                        order by position rows between unbounded preceding and 1 preceding
                    ),
                    0
                ) as before
            from string_to_table(replace(brackets, '][', '],['), ',') with ordinality as split (part, position)
        ) as stretch
    );
end
$$;

comment on function agui_internal.json_depth(text) is 'How deep arrays and objects of a valid JSON document are nested.';

revoke execute on function agui_internal.json_depth(text) from public;
