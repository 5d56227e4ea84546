create or replace procedure agui.reap(max_runs int default null, max_time interval default null)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Every name is qualified instead.
as $$
declare
    stop_at timestamptz := pg_catalog.clock_timestamp() + max_time;
    stale   record;
    runs    int := 0;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.reap does nothing on a standby';
        return;
    end if;
    for stale in select * from agui.stale_runs() loop
        exit when runs >= max_runs or pg_catalog.clock_timestamp() >= stop_at;
        if not pg_catalog.pg_try_advisory_xact_lock(agui.job_lock('reap')) then
            raise notice 'agui.reap does nothing more: another one is at work';
            exit;
        end if;
        if agui.reap_run(stale.thread_key, stale.run_no) is not null then
            runs := runs + 1;
        end if;
        commit;
    end loop;
end
$$;

comment on procedure agui.reap(int, interval) is
    'Closes the runs in progress that gave no sign of life (an event, agui.keep_alive) within the lease, agui.lease(): what they left open is ended in the log, '
    'then a RUN_ERROR says why. A writer that comes back late gets AG016. Commits run by run and stops after max_runs or max_time (null: when all are done). '
    'Call it outside a transaction block.';

revoke execute on procedure agui.reap(int, interval) from public;
