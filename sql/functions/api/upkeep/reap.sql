create or replace procedure agui.reap(max_runs int default null, max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    keys    pg_catalog.uuid[];
    run_nos pg_catalog.int4[];
    at      int := 0;  -- the current run, of which a note is committed; 0: none yet
    runs    int := 0;
    failed  pg_catalog.text[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.reap does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    perform agui_internal.job_lock_id('reap');  -- fails if the role sees no runs
    perform agui_internal.note_uptime(is_writer => false);
    perform agui_internal.forget_ended_runs('reap');
    perform agui_internal.forget_claims();
    commit;
    set local search_path = pg_catalog, pg_temp;
    while agui_internal.find_ends() operator(pg_catalog.>) 0 loop
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() operator(pg_catalog.>=) stop_at;
    end loop;
    select pg_catalog.array_agg(stale.thread_key), pg_catalog.array_agg(stale.run_no)
    into keys, run_nos
    from agui_internal.stale_runs() as stale;
    loop
        exit when keys is null;
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('reap')) then
            perform agui_internal.take_back_attempt('reap', keys[at], array[run_nos[at]]);  -- the run is not begun
            blocked := agui_internal.job_lock_problem('reap');
            if blocked is null then
                raise notice 'agui.reap stops: another agui.reap is in progress';
            end if;
            exit;
        end if;
        -- As in agui_internal.begin_step. But the events that close a run are part of the log, so
        -- this commit waits for the disk as appends do.
        perform pg_catalog.set_config('lock_timeout', '200ms', true);
        if at > 0 then
            begin
                if agui_internal.reap_run(keys[at], run_nos[at]) is not null then
                    runs := runs + 1;
                    perform agui_internal.note_success('reap', keys[at], array[run_nos[at]]);
                else
                    perform agui_internal.take_back_attempt('reap', keys[at], array[run_nos[at]]);
                end if;
            exception
                when others then
                    raise warning 'agui.reap: thread with key %, run number %: %', keys[at], run_nos[at], sqlerrm;
                    perform agui_internal.note_failure('reap', keys[at], sqlstate, sqlerrm, array[run_nos[at]]);
                    if sqlstate <> '55P03' then
                        failed := failed || pg_catalog.format('%s/%s', keys[at], run_nos[at]);
                        failure := coalesce(failure, sqlerrm);
                        code := coalesce(code, sqlstate);
                    end if;
            end;
        end if;
        at := at + 1;
        exit when keys[at] is null or runs >= max_runs or pg_catalog.clock_timestamp() >= stop_at;
        perform agui_internal.note_attempt('reap', keys[at], array[run_nos[at]]);
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.reap', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.reap: %s of the stale runs could not be closed: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The others are closed. agui.quarantine says when the failed ones are retried; agui.verify shows what is wrong with a thread.';
    end if;
    commit;
end
$$;

comment on procedure agui.reap(int, interval) is
    'Closes the stale runs: those in progress without a sign of life (an event or agui.keep_alive) '
    'within the lease, which is the setting lease or heartbeat_lease (agui.setting). Appends the '
    'ends of what they left open, then a RUN_ERROR with the reason. A writer that returns late gets '
    'UI016. The lease counts only while writers can reach the server: after an outage each run has '
    'its full lease. Commits after each run and stops after max_runs or max_time (null: no limit), '
    'or in time before statement_timeout. If a run fails, the others are still closed: the run is '
    'listed in agui.quarantine, and the error is raised at the end. Call it outside a transaction '
    'block.';

revoke execute on procedure agui.reap(int, interval) from public;
