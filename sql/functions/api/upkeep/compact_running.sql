create or replace procedure agui.compact_running(every_events int default 1000, max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at   pg_catalog.timestamptz;
    candidate pg_catalog.record;
    failed    pg_catalog.text[] := '{}';
    failure   pg_catalog.text;
    code      pg_catalog.text;
    blocked   pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact_running does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    perform agui_internal.job_lock_id('compact_running');  -- fails if the role sees no runs
    perform agui_internal.forget_ended_runs('compact_running');
    for candidate in
        select run.thread_key, run.run_no
        from agui.run as run
        left join agui.snapshot as snapshot
            on snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no and snapshot.rules = agui_internal.rules()
        left join agui_internal.job_note as note
            on note.job = 'compact_running' and note.thread_key = run.thread_key and note.run_no = run.run_no
        cross join lateral (
            select coalesce(pg_catalog.sum(batch.n), 0) as n
            from agui.batch as batch
            where batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq > coalesce(snapshot.through_seq, run.first_seq - 1)
        ) as unfolded
        where run.status = 'running'
            and unfolded.n >= every_events
            and (note.next_at is null or note.next_at <= pg_catalog.clock_timestamp())
        order by coalesce(note.attempts, 0), run.thread_key, run.run_no
    loop
        exit when max_time <= '0';
        perform agui_internal.begin_step();
        perform agui_internal.note_attempt('compact_running', candidate.thread_key, array[candidate.run_no]);
        commit;
        set local search_path = pg_catalog, pg_temp;
        perform agui_internal.begin_step();
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact_running')) then
            perform agui_internal.take_back_attempt('compact_running', candidate.thread_key, array[candidate.run_no]);
            commit;
            set local search_path = pg_catalog, pg_temp;
            blocked := agui_internal.job_lock_problem('compact_running');
            if blocked is null then
                raise notice 'agui.compact_running stops: another agui.compact_running is in progress';
            end if;
            exit;
        end if;
        begin
            perform agui_internal.compact_running_run(candidate.thread_key, candidate.run_no, stop_at);
            perform agui_internal.note_success('compact_running', candidate.thread_key, array[candidate.run_no]);
        exception
            when others then
                raise warning 'agui.compact_running: thread with key %, run number %: %', candidate.thread_key, candidate.run_no, sqlerrm;
                perform agui_internal.note_failure('compact_running', candidate.thread_key, sqlstate, sqlerrm, array[candidate.run_no]);
                if sqlstate <> '55P03' then
                    failed := failed || pg_catalog.format('%s/%s', candidate.thread_key, candidate.run_no);
                    failure := coalesce(failure, sqlerrm);
                    code := coalesce(code, sqlstate);
                end if;
        end;
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() >= stop_at;
    end loop;

    perform agui_internal.refuse_blocked('agui.compact_running', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.compact_running: %s of the runs in progress got no snapshot: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The other runs have one. agui.quarantine says when the failed ones are retried.';
    end if;
    commit;
end
$$;

comment on procedure agui.compact_running(int, interval) is
    'Makes or renews the snapshot of every run in progress that received every_events events since '
    'its last one, so that a reload in the middle of a long run stays fast. Stops after max_time '
    '(null: no limit), or in time before statement_timeout, also within a long run: its snapshot '
    'then covers a part of it, and the next call continues from there. Commits after each run. '
    'Skips threads that another compactor holds. If a run fails, the others are still processed: '
    'the run is listed in agui.quarantine, and the error is raised at the end. Does nothing, with a '
    'notice, on a standby and while another call is in progress. Call it outside a transaction '
    'block. Errors: UI022 a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on procedure agui.compact_running(int, interval) from public;
