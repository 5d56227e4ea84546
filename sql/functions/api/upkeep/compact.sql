create or replace procedure agui.compact(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default '0'
)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    due_by  pg_catalog.timestamptz := 'infinity';
    from_at pg_catalog.timestamptz := '-infinity';
    steps   agui_internal.compaction_step[] := '{}';  -- of the next transaction; notes of them are committed
    step    agui_internal.compaction_step;
    limits  agui_internal.fold_limits;
    near    pg_catalog.uuid;    -- the last thread compacted, whose row is locked
    folded  pg_catalog.uuid[];  -- the threads compacted in this transaction
    carried agui_internal.carried_fold;
    runs    int := 0;
    is_first boolean := true;
    is_begun boolean := false;
    busy    pg_catalog.uuid[] := '{}';
    has_come_back boolean := false;
    failed  pg_catalog.uuid[] := '{}';
    is_failed boolean;
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
    waiting bigint;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    if older_than > '0' then  -- if it is 0, a run is due even if the clock was set back since the run ended
        due_by := pg_catalog.clock_timestamp() - older_than;
    end if;
    while agui_internal.apply_rules() operator(pg_catalog.>) 0 loop
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() operator(pg_catalog.>=) stop_at;
    end loop;
    if (max_time <= '0') is not true then
        -- Before runs are folded, because a fold takes from parts only what is new.
        call agui_internal.split_inputs((stop_at - pg_catalog.clock_timestamp()) / 2);
        set local search_path = pg_catalog, pg_temp;
    end if;
    loop
        -- A transaction-level lock: each commit releases it, so it never stays behind on a pooled
        -- connection.
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact')) then
            -- the runs are not begun
            perform agui_internal.take_back_attempt('compact', chosen.thread_key, chosen.run_nos) from pg_catalog.unnest(steps) as chosen;
            blocked := agui_internal.job_lock_problem('compact');
            if blocked is null then
                raise notice 'agui.compact stops: another compaction is in progress';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();
        if is_first then
            perform agui_internal.note_interruption();
            limits := agui_internal.limits_of_folds(agui_internal.rules());
            is_first := false;
        end if;

        near := null;
        folded := '{}';
        foreach step in array steps loop
            near := null;
            if is_begun and pg_catalog.clock_timestamp() >= stop_at then
                perform agui_internal.take_back_attempt('compact', step.thread_key, step.run_nos);
                continue;
            end if;
            is_begun := true;
            if not agui_internal.hold_thread(step.thread_key, step.step_no) then
                perform agui_internal.take_back_attempt('compact', step.thread_key, step.run_nos);
                busy := busy || step.thread_key;
            else
                begin
                    carried := agui_internal.compact_sequence(step.thread_key, step.run_nos, carried, stop_at, limits);
                    if carried.is_cut then
                        -- the run is not folded to its end
                        perform agui_internal.take_back_attempt('compact', step.thread_key, step.run_nos);
                    else
                        perform agui_internal.note_success('compact', step.thread_key, step.run_nos);
                        if carried.is_done is null then
                            runs := runs + pg_catalog.cardinality(step.run_nos);
                        end if;
                    end if;
                    near := step.thread_key;
                    folded := pg_catalog.array_remove(folded, near) || near;
                exception
                    when others then
                        carried := null;
                        if agui_internal.note_failure('compact', step.thread_key, sqlstate, sqlerrm, step.run_nos) then
                            near := step.thread_key;
                            -- Of several runs, each is then tried alone.
                            is_failed := pg_catalog.cardinality(step.run_nos) = 1;
                            if is_failed then
                                raise warning 'agui.compact: thread with key %, run number %: %', step.thread_key, step.run_nos[1], sqlerrm;
                            end if;
                        else
                            raise warning 'agui.compact: the thread with key % is postponed: %', step.thread_key, sqlerrm;
                            busy := busy || step.thread_key;
                            is_failed := sqlstate <> '55P03';
                        end if;
                        if is_failed then
                            failed := pg_catalog.array_remove(failed, step.thread_key) || step.thread_key;
                            failure := coalesce(failure, sqlerrm);
                            code := coalesce(code, sqlstate);
                        end if;
                end;
            end if;
        end loop;

        -- Late, because appends wait for what this locks.
        begin
            perform agui_internal.fill_title(untitled.thread_key) from pg_catalog.unnest(folded) as untitled (thread_key);
        exception
            when others then
                raise warning 'agui.compact: titles of threads: %', sqlerrm;
        end;

        -- The commit includes the notes of the next steps. If this process is killed in one of those
        -- (out of memory, time limit), the next call compacts the other runs first, then each of
        -- these alone, the one that was in progress last.
        exit when runs >= max_runs or max_time <= '0' or is_begun and pg_catalog.clock_timestamp() >= stop_at;
        steps := agui_internal.choose_to_compact(
            near, from_at, due_by, busy, false, step.run_nos[pg_catalog.cardinality(step.run_nos)],
            -- Several runs are not folded in pieces.
            case when pg_catalog.clock_timestamp() >= stop_at - interval '1 second' then 1 else max_runs - runs end,
            carried.bytes, 16
        );
        commit;
        set local search_path = pg_catalog, pg_temp;
        if steps <> '{}' then
            from_at := steps[pg_catalog.cardinality(steps)].place;
        elsif from_at > '-infinity' then
            from_at := '-infinity';  -- what was locked before may be free now
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
        raise notice 'agui.compact left % runs, and the runs that continue from them, in quarantine: see agui.quarantine', waiting;
    end if;
    perform agui_internal.refuse_blocked('agui.compact', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.compact: compaction failed for %s of the threads: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their keys: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'All other runs are done. agui.quarantine says when the failed ones are retried; agui.retry lets the next call retry them at once.';
    end if;
    commit;
end
$$;

comment on procedure agui.compact(int, interval, interval) is
    'Compacts runs that have ended: folds them, thread by thread, oldest first, and keeps the '
    'snapshots that the rules require. Before that it stores inputs in parts, in at most half of '
    'the time. At the end it calls agui.repack for runs that ended long enough ago. Stops after '
    'max_runs runs or after max_time (null: no limit), or in time before statement_timeout, also '
    'within a long run; the next call continues from there. Each call folds at least some thousand '
    'events, unless max_time is 0. Runs that ended less than older_than ago are left for later. '
    'Commits after each run, or some short runs, so it can be cancelled and called at any time. If '
    'a run fails, or the process is killed in it, the other runs are still compacted: that run is '
    'listed in agui.quarantine, and a failure is raised at the end. A thread that another '
    'transaction holds is postponed. Does nothing, with a notice, on a standby and while another '
    'agui.compact or pgagui compact is in progress. Call it outside a transaction block, for '
    'example from pg_cron. Errors: UI023 the fold of a run exceeds a limit.';

revoke execute on procedure agui.compact(int, interval, interval) from public;
