create or replace procedure agui.apply_retention(max_threads int default null, max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    due     agui_internal.due_thread;
    page    agui_internal.due_thread[];
    after   pg_catalog.uuid;
    threads int := 0;
    pass    int := 1;
    busy    agui_internal.due_thread[] := '{}';  -- what other transactions hold, for the second pass
    failed  pg_catalog.uuid[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.apply_retention does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    page := '{}';
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('retain')) then
            blocked := agui_internal.job_lock_problem('retain');
            if blocked is null then
                raise notice 'agui.apply_retention stops: another agui.apply_retention is in progress';
            end if;
            exit;
        end if;
        exit when threads >= max_threads or pg_catalog.clock_timestamp() >= stop_at;

        if pg_catalog.cardinality(page) = 0 and pass = 1 then
            page := array(select listed from agui_internal.threads_due(after, 100) as listed);
            if pg_catalog.cardinality(page) = 0 then
                pass := 2;
                page := busy;
            end if;
        end if;
        exit when pg_catalog.cardinality(page) = 0;
        due := page[1];
        page := page[2 :];
        after := due.thread_key;
        continue when due.kept_because is not null;
        begin
            if agui_internal.retain_thread(due.thread_key, due.action) then
                threads := threads + 1;
            end if;
        exception
            when others then
                if sqlstate = '55P03' then
                    busy := case when pass = 1 then busy || due else busy end;
                else
                    raise warning 'agui.apply_retention: %, thread with key %: %', due.action, due.thread_key, sqlerrm;
                    failed := failed || due.thread_key;
                    failure := coalesce(failure, sqlerrm);
                    code := coalesce(code, sqlstate);
                end if;
        end;
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.apply_retention', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.apply_retention: %s actions failed: %s', pg_catalog.cardinality(failed), failure),
            detail = 'The keys of their threads: ' || pg_catalog.array_to_string(failed, ', ');
    end if;
    commit;
end
$$;

comment on procedure agui.apply_retention(int, interval) is
    'Does what the rules of agui.set_retention say, to the threads for which it is due: archives '
    'them, removes their checkpoints, or erases them as agui.erase does. Threads that are held are '
    'only archived; threads in progress are left. Commits after each thread. Stops after '
    'max_threads actions or max_time (null: no limit), or in time before statement_timeout. If a '
    'thread is locked by another transaction or fails, the others are still done. Call it outside a '
    'transaction block. Requires agui_maintainer.';

revoke execute on procedure agui.apply_retention(int, interval) from public;
