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
        join agui.run as parent
            on parent.thread_key = ancestor.thread_key and parent.run_no = ancestor.parent_no and parent.run_no < ancestor.run_no
        where ancestor.run_no <> lineage_behind.base_no
    )
    select * from ancestor
$$;

comment on function agui_internal.lineage_behind(uuid, int, int) is
    'The rows of the runs from a run to its ancestor base_no (0: to its root), both included.';

revoke execute on function agui_internal.lineage_behind(uuid, int, int) from public;
