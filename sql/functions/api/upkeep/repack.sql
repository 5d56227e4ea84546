create or replace procedure agui.repack(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default null
)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    next    pg_catalog.record;  -- the next run, of which a note is committed
    near    pg_catalog.uuid;    -- the last thread repacked
    first_no int;               -- the first of its runs
    piece   pg_catalog.record;
    after_seq bigint := 0;
    runs    int := 0;
    busy    pg_catalog.uuid[] := '{}';
    has_come_back boolean := false;
    failed  pg_catalog.text[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.repack does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    select null::uuid as thread_key, null::int as run_no into next;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('repack')) then
            -- the run is not begun
            perform agui_internal.take_back_attempt('repack', next.thread_key, array[next.run_no]);
            blocked := agui_internal.job_lock_problem('repack');
            if blocked is null then
                raise notice 'agui.repack stops: another agui.repack is in progress';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();
        if next.run_no is not null then
            first_no := least(first_no, next.run_no);
            begin
                select * into piece from agui_internal.repack_run(next.thread_key, next.run_no, after_seq);
                if piece.is_busy then
                    perform agui_internal.take_back_attempt('repack', next.thread_key, array[next.run_no]);
                    busy := busy || next.thread_key;
                elsif piece.next_seq is null then
                    perform agui_internal.note_success('repack', next.thread_key, array[next.run_no]);
                    runs := runs + 1;
                elsif pg_catalog.clock_timestamp() >= stop_at then
                    -- the next call continues from there
                    perform agui_internal.take_back_attempt('repack', next.thread_key, array[next.run_no]);
                    piece.next_seq := null;
                end if;
                after_seq := coalesce(piece.next_seq - 1, 0);
            exception
                when others then
                    raise warning 'agui.repack: thread with key %, run number %: %', next.thread_key, next.run_no, sqlerrm;
                    if not agui_internal.note_failure('repack', next.thread_key, sqlstate, sqlerrm, array[next.run_no]) then
                        busy := busy || next.thread_key;
                    end if;
                    after_seq := 0;
                    if sqlstate <> '55P03' then
                        failed := failed || pg_catalog.format('%s/%s', next.thread_key, next.run_no);
                        failure := coalesce(failure, sqlerrm);
                        code := coalesce(code, sqlstate);
                    end if;
            end;
        end if;

        if after_seq = 0 then
            near := next.thread_key;
            next.thread_key := null;
            if runs < max_runs is not false
                and (near is null and max_time > '0' or pg_catalog.clock_timestamp() < stop_at) is not false
            then
                select * into next from agui_internal.next_to_repack(near, older_than, busy, coalesce(next.run_no, 0));
                if next.run_no is null and busy <> '{}' and not has_come_back then
                    has_come_back := true;
                    busy := '{}';
                    select * into next from agui_internal.next_to_repack(near, older_than);
                end if;
            end if;
            if near is distinct from next.thread_key then
                begin
                    perform agui_internal.prune_snapshots(near, first_no);  -- its log is smaller now
                exception
                    when others then
                        raise warning 'agui.repack: snapshots of the thread with key %: %', near, sqlerrm;
                end;
                first_no := null;
            end if;
            exit when next.thread_key is null;
            perform agui_internal.note_attempt('repack', next.thread_key, array[next.run_no]);
        end if;
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.repack', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.repack: %s of the runs could not be repacked: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'All other runs are done. agui.quarantine says when the failed ones are retried; agui.retry lets the next call retry them at once.';
    end if;
    commit;
end
$$;

comment on procedure agui.repack(int, interval, interval) is
    'Joins the batches of runs that ended at least older_than ago (null: '
    'agui_internal.repack_after()) into larger batches. Live batches of a few events take several '
    'times as much space. Reads and retried appends return the same as before. Commits every 50,000 '
    'events. Stops after max_runs or max_time (null: no limit), or in time before '
    'statement_timeout, also within a run, so it can be cancelled and called at any time. If a run '
    'fails, the others are still repacked: the run is listed in agui.quarantine, and the error is '
    'raised at the end. A thread that another transaction holds is postponed. Call it outside a '
    'transaction block.';

revoke execute on procedure agui.repack(int, interval, interval) from public;
