create or replace function agui_internal.changed_after(
    changed_in xid8, thread_key uuid, run_no int, max_rows int, low uuid, high uuid
)
returns setof agui_internal.changed_place
language plpgsql
stable
parallel safe
rows 200
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
-- The index has the order of the transactions. The planner takes a range of keys for few runs, and would read and sort all of them.
set enable_sort = off
set jit = off
as $$
declare
    -- Of all runs so many changes are read before the runs of a scope are, and of a scope at most so many runs.
    many_changes constant int := 1000;
    many_runs    constant int := 10000;
begin
    -- A reader of a scope that is quiet stays where it is, while other scopes go on.
    if left(low::text, 18) = left(high::text, 18)  -- 64 bits, which are those of a scope
        and exists (
            select
            from agui.run as changed
            where changed.changed_in >= changed_after.changed_in and changed.changed_in < pg_snapshot_xmin(pg_current_snapshot())
            order by changed.changed_in
            offset many_changes
            limit 1
        )
        and not exists (
            select from agui.run as own where own.thread_key >= low and own.thread_key <= high offset many_runs limit 1
        )
    then
        return query
        select own.changed_in, own.thread_key, own.run_no
        from (
            -- offset 0: otherwise the planner may read the changes of all scopes in their order.
            select run.changed_in, run.thread_key, run.run_no from agui.run as run where run.thread_key >= low and run.thread_key <= high offset 0
        ) as own
        where own.changed_in < pg_snapshot_xmin(pg_current_snapshot())
            and (own.changed_in, own.thread_key, own.run_no) > (changed_after.changed_in, changed_after.thread_key, changed_after.run_no)
        order by own.changed_in, own.thread_key, own.run_no
        limit max_rows;
        return;
    end if;

    return query
    select changed.changed_in, changed.thread_key, changed.run_no
    from agui.run as changed
    where changed.changed_in >= changed_after.changed_in
        -- Below the horizon no transaction is in progress, so nothing will come before what is read now.
        and changed.changed_in < pg_snapshot_xmin(pg_current_snapshot())
        and (changed.changed_in, changed.thread_key, changed.run_no) > (changed_after.changed_in, changed_after.thread_key, changed_after.run_no)
        and changed.thread_key >= low and changed.thread_key <= high
    order by changed.changed_in, changed.thread_key, changed.run_no
    limit max_rows;
end
$$;

comment on function agui_internal.changed_after(xid8, uuid, int, int, uuid, uuid) is
    'The runs with keys of a range that were changed behind a place, in the order of the transactions '
    'that changed them last. All of them: none will come before these later.';

revoke execute on function agui_internal.changed_after(xid8, uuid, int, int, uuid, uuid) from public;
