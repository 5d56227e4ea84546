create or replace function agui_internal.bracket_height(brackets text)
returns int
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
-- The text is split into stretches of opening brackets followed by closing ones: a single pass at
-- any height.
return (
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

comment on function agui_internal.bracket_height(text) is
    'How many of these brackets, [ and ], are open at once at most; below 0 closing brackets count too.';

revoke execute on function agui_internal.bracket_height(text) from public;
