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
    next    pg_catalog.record;  -- the next runs, of which notes are committed
    near    pg_catalog.uuid;    -- the last thread compacted, whose row is locked
    carried agui_internal.carried_fold;
    runs    int := 0;
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
    stop_at := pg_catalog.clock_timestamp() + max_time;
    if older_than > '0' then  -- if it is 0, a run is due even if the clock was set back since the run ended
        due_by := pg_catalog.clock_timestamp() - older_than;
    end if;
    select null::uuid as thread_key, null::int[] as run_nos, null::timestamptz as place into next;
    loop
        -- A transaction-level lock: each commit releases it, so it never stays behind on a pooled
        -- connection.
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact')) then
            -- the runs are not begun
            perform agui_internal.take_back_attempt('compact', next.thread_key, next.run_nos);
            blocked := agui_internal.job_lock_problem('compact');
            if blocked is null then
                raise notice 'agui.compact stops: another compaction is in progress';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();

        near := null;
        if next.run_nos is not null then
            if not agui_internal.hold_thread(next.thread_key) then
                perform agui_internal.take_back_attempt('compact', next.thread_key, next.run_nos);
                busy := busy || next.thread_key;
            elsif (
                select pg_catalog.count(*)
                from pg_catalog.unnest(next.run_nos) with ordinality as chosen (run_no, position)
                join agui.run as run
                    on run.thread_key = next.thread_key and run.run_no = chosen.run_no
                where run.log_bytes is null
                    and run.status <> 'running'
                    and (chosen.position = 1 or run.parent_no = next.run_nos[chosen.position::int - 1])
            ) < pg_catalog.cardinality(next.run_nos) then
                -- another transaction compacted them in the meantime
                perform agui_internal.note_success('compact', next.thread_key, next.run_nos);
            else
                begin
                    carried := agui_internal.compact_sequence(next.thread_key, next.run_nos, carried, stop_at);
                    perform agui_internal.fill_title(next.thread_key);
                    if carried.is_cut then
                        -- the run is not folded to its end
                        perform agui_internal.take_back_attempt('compact', next.thread_key, next.run_nos);
                    else
                        perform agui_internal.note_success('compact', next.thread_key, next.run_nos);
                        runs := runs + pg_catalog.cardinality(next.run_nos);
                    end if;
                    near := next.thread_key;
                exception
                    when others then
                        carried := null;
                        if agui_internal.note_failure('compact', next.thread_key, sqlstate, sqlerrm, next.run_nos) then
                            near := next.thread_key;
                            -- Of several runs, each is then tried alone.
                            is_failed := pg_catalog.cardinality(next.run_nos) = 1;
                            if is_failed then
                                raise warning 'agui.compact: thread with key %, run number %: %', next.thread_key, next.run_nos[1], sqlerrm;
                            end if;
                        else
                            raise warning 'agui.compact: the thread with key % is postponed: %', next.thread_key, sqlerrm;
                            busy := busy || next.thread_key;
                            is_failed := sqlstate <> '55P03';
                        end if;
                        if is_failed then
                            failed := pg_catalog.array_remove(failed, next.thread_key) || next.thread_key;
                            failure := coalesce(failure, sqlerrm);
                            code := coalesce(code, sqlstate);
                        end if;
                end;
            end if;
        end if;

        -- The commit of a step includes the notes of the next one. If this process is killed in that
        -- (out of memory, time limit), the next call compacts the other runs first, then each of
        -- these alone.
        exit when runs >= max_runs or max_time <= '0' or next.run_nos is not null and pg_catalog.clock_timestamp() >= stop_at;
        select * into next
        from agui_internal.choose_to_compact(
            near, from_at, due_by, busy, false, next.run_nos[pg_catalog.cardinality(next.run_nos)],
            -- Several runs are not folded in pieces.
            case when pg_catalog.clock_timestamp() >= stop_at - interval '1 second' then 1 else max_runs - runs end,
            carried.bytes
        );
        commit;
        set local search_path = pg_catalog, pg_temp;
        if next.run_nos is not null then
            from_at := next.place;
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
    'snapshots that the rules require. Then calls agui.repack for runs that ended long enough ago. '
    'Stops after max_runs runs or after max_time (null: no limit), also within a long run; the '
    'next call continues from there. Each call folds at least some thousand events, unless '
    'max_time is 0. Runs that ended less than older_than ago are left for later. Commits after '
    'each run, or some short runs of a thread, so it can be cancelled and called at any time. If a '
    'run fails, or the process is killed in it, the other runs are still compacted: that run is '
    'listed in agui.quarantine, and a failure is raised at the end. A thread that another transaction holds is postponed. Does '
    'nothing, with a notice, on a standby and while another agui.compact or pgagui compact is in '
    'progress. Call it outside a transaction block, for example from pg_cron. '
    'Errors: UI023 the fold of a run exceeds a limit.';

revoke execute on procedure agui.compact(int, interval, interval) from public;
