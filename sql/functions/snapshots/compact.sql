create or replace procedure agui.compact(max_runs int default null)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Every name is qualified instead.
as $$
declare
    key    uuid;
    run_no int;
    done   int := 0;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact does nothing on a standby';
        return;
    end if;
    while max_runs is null or done < max_runs loop
        -- Threads that another compactor holds are passed over. Those that it has just let go may still look unprocessed
        -- here: the next statement, with a snapshot of its own, knows better.
        select run.thread_key into key
        from agui.run as run
        join agui.thread as thread on thread.thread_key = run.thread_key
        where run.log_bytes is null and run.status <> 'running'
        order by run.thread_key, run.run_no
        limit 1
        for no key update of thread skip locked;
        exit when not found;

        select run.run_no into run_no
        from agui.run as run
        where run.thread_key = key and run.log_bytes is null and run.status <> 'running'
        order by run.run_no
        limit 1;
        if found then
            perform agui.compact_run(key, run_no);
            done := done + 1;
        end if;
        commit;
    end loop;
end
$$;

comment on procedure agui.compact(int) is
    'Folds ended runs that have not been processed yet, parents before children, and keeps the snapshots that the rules ask for. '
    'Commits run by run and stops after max_runs (null: when all are done), so it can be cut off and called again at any time, from '
    'pg_cron or by several sessions side by side. Call it outside a transaction block.';

revoke execute on procedure agui.compact(int) from public;
