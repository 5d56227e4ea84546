create or replace function agui_internal.choose_to_compact(
    near         uuid,
    from_at      timestamptz,
    due_by       timestamptz,
    passed_over  uuid[],
    whole_threads boolean,
    after_no     int default 0,
    max_runs     int default 1,
    fold_bytes   bigint default null,
    out thread_key uuid,
    out run_nos    int[],
    out place      timestamptz
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    own    record;
    run_no int;
begin
    perform agui_internal.own_key(near);
    select * into own from agui_internal.own_keys();
    if near is not null then
        run_no := agui_internal.next_to_compact(near, due_by, after_no);
        if run_no is null then
            -- The whole thread is done except for what waits, so it is no longer processed run by
            -- run.
            delete from agui_internal.job_note as note
            where note.job = 'compact' and note.thread_key = near and note.run_no = 0;
        else
            thread_key := near;
            place := from_at;
        end if;
    end if;
    while run_no is null loop
        -- Skip threads that others hold. Continuing from the last position avoids the index entries
        -- of all runs done since then, which only vacuum removes.
        select run.thread_key, run.ended_at into thread_key, place
        from agui.run as run
        join agui.thread as thread on thread.thread_key = run.thread_key
        where run.log_bytes is null
            and run.status <> 'running'
            and run.ended_at >= from_at
            and run.ended_at <= due_by
            and run.thread_key <> all (passed_over)
            -- As a case expression, the condition cannot make the planner choose another index than
            -- that of the queue.
            and case when agui_internal.has_row_security() then run.thread_key >= own.low and run.thread_key <= own.high else true end
            and not exists (
                select from agui_internal.job_note as note where note.job = 'compact' and note.thread_key = run.thread_key
            )
        order by run.ended_at
        limit 1
        for no key update of thread skip locked;
        exit when not found;
        -- A thread released just now may still look unprocessed in that statement. This one has a
        -- newer snapshot.
        run_no := case when whole_threads then 0 else agui_internal.next_to_compact(thread_key, due_by) end;
        passed_over := passed_over || thread_key;
    end loop;
    if run_no is null and from_at = '-infinity' then
        -- Last, runs of an earlier attempt that did not succeed: fewest attempts first.
        select noted.thread_key, noted.next_no, from_at
        into thread_key, run_no, place
        from agui.thread as thread
        join lateral (
            select note.thread_key, min(note.attempts) as attempts, min(note.noted_at) as noted_at, agui_internal.next_to_compact(note.thread_key, due_by) as next_no
            from agui_internal.job_note as note
            where note.job = 'compact' and note.thread_key <> all (passed_over) and note.thread_key >= own.low and note.thread_key <= own.high
            group by note.thread_key
        ) as noted on noted.thread_key = thread.thread_key
        where noted.next_no is not null
        order by noted.attempts, noted.noted_at
        limit 1
        for no key update of thread skip locked;
    end if;
    if run_no is not null then
        run_nos := case
            when run_no = 0 then '{0}'
            else agui_internal.sequence_to_compact(thread_key, run_no, due_by, max_runs, case when thread_key = near then fold_bytes end)
        end;
        perform agui_internal.note_attempt('compact', thread_key, run_nos);
    end if;
end
$$;

comment on function agui_internal.choose_to_compact(uuid, timestamptz, timestamptz, uuid[], boolean, int, int, bigint) is
    'Chooses what to compact next and notes it; commit the note before beginning the run. The '
    'choice is the next run of the thread near, where after_no is the last run done; else, from the '
    'position from_at in the queue on, a run of the thread whose run ended first; else, from the '
    'beginning, a run of a thread that has notes. Up to max_runs (null: no limit) are taken '
    'together, after a fold of fold_bytes (agui_internal.sequence_to_compact). whole_threads: '
    'run_nos is {0} for a thread without notes, whose runs are then processed in one transaction. '
    'Nulls: there is none. Threads that others hold, and threads outside the scopes of the role, '
    'are skipped.';

revoke execute on function agui_internal.choose_to_compact(uuid, timestamptz, timestamptz, uuid[], boolean, int, int, bigint) from public;
