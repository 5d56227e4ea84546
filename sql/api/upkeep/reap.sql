create or replace procedure agui.reap(max_runs int default null, max_time interval default null)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Each transaction sets the path instead, before it looks up any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    stale   pg_catalog.record;
    runs    int := 0;
    failed  pg_catalog.text[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.reap does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := pg_catalog.clock_timestamp() + max_time;
    perform agui_internal.job_lock_id('reap');  -- fails where the role sees no runs
    perform agui_internal.note_uptime(is_writer => false);
    commit;
    set local search_path = pg_catalog, pg_temp;
    for stale in select * from agui_internal.stale_runs() loop
        exit when runs >= max_runs or pg_catalog.clock_timestamp() >= stop_at;
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('reap')) then
            raise notice 'agui.reap does nothing more: another one is at work';
            exit;
        end if;
        begin
            if agui_internal.reap_run(stale.thread_key, stale.run_no) is not null then
                runs := runs + 1;
            end if;
        exception
            when others then
                raise warning 'agui.reap: thread with key %, run number %: %', stale.thread_key, stale.run_no, sqlerrm;
                failed := failed || pg_catalog.format('%s/%s', stale.thread_key, stale.run_no);
                failure := coalesce(failure, sqlerrm);
                code := coalesce(code, sqlstate);
        end;
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;

    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('%s of the stale runs could not be closed: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The others are closed; agui.verify says what is wrong with a thread.';
    end if;
    commit;
end
$$;

comment on procedure agui.reap(int, interval) is
    'Closes the runs in progress that gave no sign of life (an event, agui.keep_alive) within the lease, which '
    'is one of the settings lease and heartbeat_lease (agui.setting): what they left open is ended in the log, '
    'then a RUN_ERROR says why. A writer that comes back late gets UI016. The lease counts only while writers '
    'can reach the server: after an outage each run has all of it once more. Commits run by run and stops '
    'after max_runs or max_time (null: when all are done). A run that cannot be closed does not hold up the '
    'others and is the error in the end. Call it outside a transaction block.';

revoke execute on procedure agui.reap(int, interval) from public;
