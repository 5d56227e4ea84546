create or replace function agui_internal.ancestors(leaf agui.run, after_seq bigint default 0)
returns setof agui.run
language plpgsql
stable
parallel safe
rows 20
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL the plan is cached.
    return query
    with recursive ancestor as (
        select leaf.*
        where leaf.run_no is not null
        union all
        select parent.*
        from ancestor
        -- The offset makes this one look-up in the index for each. A join may read all runs of the
        -- thread each time.
        cross join lateral (
            select run.*
            from agui.run as run
            where run.thread_key = ancestor.thread_key and run.run_no = ancestor.parent_no and run.run_no < ancestor.run_no
            offset 0
        ) as parent
        -- A parent has ended before its child begins.
        where ancestor.first_seq - 1 > after_seq
    )
    select * from ancestor;
end
$$;

comment on function agui_internal.ancestors(agui.run, bigint) is
    'The rows of the runs from a run back to the one that has the event after after_seq, or to the root: '
    'run_no decreases from one to the next. None if the run is null.';

revoke execute on function agui_internal.ancestors(agui.run, bigint) from public;
