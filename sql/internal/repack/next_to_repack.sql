create or replace function agui_internal.next_to_repack(
    near       uuid,
    older_than interval,
    out thread_key uuid,
    out run_no     int
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    due_before timestamptz := now() - coalesce(older_than, agui_internal.repack_after());
begin
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui.run as run
    where run.thread_key = near and run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
    order by run.run_no
    limit 1;
    if not found then
        select run.thread_key, run.run_no
        into next_to_repack.thread_key, next_to_repack.run_no
        from agui.run as run
        where run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        order by run.ended_at
        limit 1;
    end if;
end
$$;

comment on function agui_internal.next_to_repack(uuid, interval) is
    'The next run to repack, one that ended at least older_than ago (null: agui_internal.repack_after()): of the thread near while it has one, then '
    'the one that ended first. Nulls: there is none.';

revoke execute on function agui_internal.next_to_repack(uuid, interval) from public;
