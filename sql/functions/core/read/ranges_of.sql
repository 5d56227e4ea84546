create or replace function agui_internal.ranges_of(numbers int[])
returns int4range[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select array_agg(int4range(run.first_no, run.last_no, '[]') order by run.run_no)
        from (
            select numbered.run_no, min(numbered.number) as first_no, max(numbered.number) as last_no
            from (
                select beginning.number, sum(beginning.is_one::int) over (order by beginning.place) as run_no
                from (
                    select element.number, element.place, element.number is distinct from lag(element.number) over (order by element.place) + 1 as is_one
                    from unnest(numbers) with ordinality as element (number, place)
                ) as beginning
            ) as numbered
            group by numbered.run_no
        ) as run
    );
end
$$;

comment on function agui_internal.ranges_of(int[]) is
    'Numbers in their order, as ranges of numbers that follow each other. Null: there are none.';

revoke execute on function agui_internal.ranges_of(int[]) from public;
