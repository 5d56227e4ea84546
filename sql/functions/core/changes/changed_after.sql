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
set jit = off
as $$
begin
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
