create or replace procedure agui.compact(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default '0'
)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Each transaction sets the path instead, before it looks up any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    due_by  pg_catalog.timestamptz := 'infinity';
    from_at pg_catalog.timestamptz := '-infinity';
    next    pg_catalog.record;  -- the run to do, of which a note is committed
    near    pg_catalog.uuid;    -- the thread that was done last, whose row is held
    carried agui_internal.carried_fold;
    runs    int := 0;
    busy    pg_catalog.uuid[] := '{}';
    has_come_back boolean := false;
    failed  pg_catalog.uuid[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- by whom, where the lock of the job is not held by another one at work
    waiting bigint;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := pg_catalog.clock_timestamp() + max_time;
    if older_than > '0' then  -- without it a run is due even if the clock was set back since it ended
        due_by := pg_catalog.clock_timestamp() - older_than;
    end if;
    select null::uuid as thread_key, null::int as run_no, null::timestamptz as place into next;
    loop
        -- It goes with each commit, and so leaves nothing behind in a pooled connection.
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact')) then
            perform agui_internal.take_back_attempt('compact', next.thread_key, next.run_no);  -- it is not begun
            blocked := agui_internal.job_lock_problem('compact');
            if blocked is null then
                raise notice 'agui.compact does nothing more: another one is at work';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();

        near := null;
        if next.run_no is not null then
            if not agui_internal.hold_thread(next.thread_key) then
                perform agui_internal.take_back_attempt('compact', next.thread_key, next.run_no);
                busy := busy || next.thread_key;
            elsif not exists (
                select
                from agui.run as run
                where run.thread_key = next.thread_key and run.run_no = next.run_no and run.log_bytes is null and run.status <> 'running'
            ) then
                perform agui_internal.note_success('compact', next.thread_key, next.run_no);  -- others did it meanwhile
            else
                begin
                    carried := agui_internal.compact_run(next.thread_key, next.run_no, carried, stop_at);
                    perform agui_internal.fill_title(next.thread_key);
                    if carried.is_cut then
                        perform agui_internal.take_back_attempt('compact', next.thread_key, next.run_no);  -- it is not at its end
                    else
                        perform agui_internal.note_success('compact', next.thread_key, next.run_no);
                        runs := runs + 1;
                    end if;
                    near := next.thread_key;
                exception
                    when others then
                        carried := null;
                        if agui_internal.note_failure('compact', next.thread_key, next.run_no, sqlstate, sqlerrm) then
                            raise warning 'agui.compact: thread with key %, run number %: %', next.thread_key, next.run_no, sqlerrm;
                            near := next.thread_key;
                        else
                            raise warning 'agui.compact leaves the thread with key % for later: %', next.thread_key, sqlerrm;
                            busy := busy || next.thread_key;
                        end if;
                        if sqlstate <> '55P03' then
                            failed := pg_catalog.array_remove(failed, next.thread_key) || next.thread_key;
                            failure := coalesce(failure, sqlerrm);
                            code := coalesce(code, sqlstate);
                        end if;
                end;
            end if;
        end if;

        -- The commit of a run carries the note of the next: should this session be killed at that one, out of memory or out of time,
        -- the next call does the others first.
        exit when runs >= max_runs or max_time <= '0' or next.run_no is not null and pg_catalog.clock_timestamp() >= stop_at;
        select * into next from agui_internal.choose_to_compact(near, from_at, due_by, busy, false, next.run_no);
        commit;
        set local search_path = pg_catalog, pg_temp;
        if next.run_no is not null then
            from_at := next.place;
        elsif from_at > '-infinity' then
            from_at := '-infinity';  -- what was held before may be free now
        else
            exit when busy = '{}' or has_come_back;
            has_come_back := true;
            busy := '{}';
        end if;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    -- Most of the log is stored as small batches until it is repacked.
    call agui.repack(max_runs, stop_at - pg_catalog.clock_timestamp());
    set local search_path = pg_catalog, pg_temp;

    select pg_catalog.count(*) into waiting
    from agui.quarantine as quarantine
    where quarantine.job = 'compact';
    if waiting > 0 then
        raise notice 'agui.compact left % runs in quarantine, and those that go on from them: see agui.quarantine', waiting;
    end if;
    perform agui_internal.refuse_blocked('agui.compact', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('compaction failed for %s of the threads: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their keys: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The other runs are done. agui.quarantine says when these are tried next, agui.retry lets the next call do so at once.';
    end if;
    commit;
end
$$;

comment on procedure agui.compact(int, interval, interval) is
    'Folds ended runs that have not been processed yet, thread by thread, the oldest first, and keeps the '
    'snapshots that the rules ask for; then calls agui.repack for those that ended long enough ago. Stops after max_runs runs or after max_time (null: '
    'when all are done), also within a long run: the next call goes on from there. Unless max_time is 0, some thousand events are always done. '
    'Leaves alone what ended less than older_than ago. Commits run by run, so it can '
    'be cut off and called again at any time. A run that fails, or at which it is cut off, does not hold up the others: '
    'it goes into agui.quarantine, and is the error in the end. A thread that another transaction holds is left for later. '
    'With a notice, it does nothing while another session or pgagui compact is at work, and '
    'on a standby. Call it from pg_cron, or by hand outside a transaction block. '
    'Errors: UI023 the fold of a run is over a limit.';

revoke execute on procedure agui.compact(int, interval, interval) from public;
