create or replace function agui_internal.lineage_behind(thread_key uuid, run_no int, base_no int)
returns setof agui.run
language sql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
as $$
    with recursive ancestor as (
        select run.*
        from agui.run as run
        where run.thread_key = agui_internal.visible_key(lineage_behind.thread_key) and run.run_no = lineage_behind.run_no
        union all
        select parent.*
        from ancestor
        -- The offset makes this one look-up for each, as in agui_internal.ancestors.
        cross join lateral (
            select older.*
            from agui.run as older
            where older.thread_key = ancestor.thread_key and older.run_no = ancestor.parent_no and older.run_no < ancestor.run_no
            offset 0
        ) as parent
        where ancestor.run_no <> lineage_behind.base_no
    )
    select * from ancestor
$$;

comment on function agui_internal.lineage_behind(uuid, int, int) is
    'The rows of the runs from a run to its ancestor base_no (0: to its root), both included.';

revoke execute on function agui_internal.lineage_behind(uuid, int, int) from public;
