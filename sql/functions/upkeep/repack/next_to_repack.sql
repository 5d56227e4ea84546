create or replace function agui_internal.next_to_repack(
    near        uuid,
    older_than  interval,
    passed_over uuid[] default '{}',
    after_no    int default 0,
    out thread_key uuid,
    out run_no     int
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due_before timestamptz := now() - coalesce(older_than, agui_internal.repack_after());
    own        record;
begin
    near := agui_internal.visible_key(near);
    select * into own from agui_internal.own_keys();
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui.run as run
    where run.thread_key = near and run.run_no > after_no and run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        and run.thread_key <> all (passed_over)
        and not exists (
            select
            from agui_internal.job_note as note
            where note.job = 'repack' and note.thread_key = run.thread_key and note.run_no = run.run_no
        )
    order by run.run_no
    limit 1;
    if found then
        return;
    end if;
    -- Runs of the thread near that have become due before after_no meanwhile are among these.
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui.run as run
    where run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        and run.thread_key <> all (passed_over)
        -- As a case expression, the condition cannot make the planner choose another index than
        -- that of the queue.
        and case when agui_internal.has_row_security() then run.thread_key >= own.low and run.thread_key <= own.high else true end
        and not exists (
            select
            from agui_internal.job_note as note
            where note.job = 'repack' and note.thread_key = run.thread_key and note.run_no = run.run_no
        )
    order by run.ended_at
    limit 1;
    if found then
        return;
    end if;
    -- Last, runs of an earlier attempt that did not succeed.
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui_internal.job_note as note
    join agui.run as run
        on run.thread_key = note.thread_key and run.run_no = note.run_no
    where note.job = 'repack' and (note.next_at is null or note.next_at <= clock_timestamp())
        and run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        and run.thread_key <> all (passed_over)
        and run.thread_key >= own.low and run.thread_key <= own.high
    order by note.attempts, note.noted_at
    limit 1;
end
$$;

comment on function agui_internal.next_to_repack(uuid, interval, uuid[], int) is
    'The next run to repack, one that ended at least older_than ago (null: '
    'agui_internal.repack_after()): a run of the thread near after the run after_no, which avoids '
    'reading the runs already done, while there is one; then the run that ended first; finally one '
    'with a failed attempt that may be retried now. Only in scopes of the role. Nulls: there is none.';

revoke execute on function agui_internal.next_to_repack(uuid, interval, uuid[], int) from public;
