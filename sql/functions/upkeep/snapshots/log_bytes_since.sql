create or replace function agui_internal.log_bytes_since(thread_key uuid, run_no int, base_no int)
returns bigint
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    thread_key := agui_internal.visible_key(thread_key);
    -- In PL/pgSQL the plan is cached. Planning takes several times as long as execution.
    return (
        with recursive ancestor as (
            select run.thread_key, run.run_no, run.parent_no, run.log_bytes
            from agui.run as run
            where run.thread_key = log_bytes_since.thread_key and run.run_no = log_bytes_since.run_no
            union all
            select parent.thread_key, parent.run_no, parent.parent_no, parent.log_bytes
            from ancestor
            -- The offset makes this one look-up for each, as in agui_internal.ancestors.
            cross join lateral (
                select older.*
                from agui.run as older
                where older.thread_key = ancestor.thread_key and older.run_no = ancestor.parent_no and older.run_no < ancestor.run_no
                offset 0
            ) as parent
            where parent.run_no is distinct from log_bytes_since.base_no
        )
        select coalesce(sum(ancestor.log_bytes), 0)::bigint from ancestor
    );
end
$$;

comment on function agui_internal.log_bytes_since(uuid, int, int) is
    'The stored bytes of log on the lineage of a run, from after the run base_no (null: from the '
    'root) to the end of the run.';

revoke execute on function agui_internal.log_bytes_since(uuid, int, int) from public;
