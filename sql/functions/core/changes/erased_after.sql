create or replace function agui_internal.erased_after(
    changed_in xid8, thread_key uuid, run_no int, max_rows int, low uuid, high uuid
)
returns setof agui_internal.changed_place
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
    return query
    select erasure.erased_in, erasure.thread_uid, 0
    from agui.erasure as erasure
    cross join agui_internal.erased_range(low, high) as own
    where erasure.thread_uid is not null
        and erasure.erased_in >= erased_after.changed_in
        and erasure.erased_in < pg_snapshot_xmin(pg_current_snapshot())
        and (erasure.erased_in, erasure.thread_uid, 0) > (erased_after.changed_in, erased_after.thread_key, erased_after.run_no)
        and erasure.erased_key >= own.low and erasure.erased_key <= own.high
    order by erasure.erased_in, erasure.thread_uid
    limit max_rows;
end
$$;

comment on function agui_internal.erased_after(xid8, uuid, int, int, uuid, uuid) is
    'The threads with keys of a range that were erased behind a place, as agui_internal.changed_after '
    'has the runs that were changed: thread_key is thread_uid, run_no 0. For the owner only, because '
    'agui.erasure is for maintainers.';

revoke execute on function agui_internal.erased_after(xid8, uuid, int, int, uuid, uuid) from public;
