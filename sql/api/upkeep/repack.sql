create or replace procedure agui.repack(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default null
)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Each transaction sets the path instead, before it looks up any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    next    pg_catalog.record;  -- the run to do, of which a note is committed
    near    pg_catalog.uuid;    -- the thread that was done last
    piece   pg_catalog.record;
    after_seq bigint := 0;
    runs    int := 0;
    busy    pg_catalog.uuid[] := '{}';
    has_come_back boolean := false;
    failed  pg_catalog.text[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- by whom, where the lock of the job is not held by another one at work
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.repack does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := pg_catalog.clock_timestamp() + max_time;
    select null::uuid as thread_key, null::int as run_no into next;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('repack')) then
            perform agui_internal.take_back_attempt('repack', next.thread_key, next.run_no);  -- it is not begun
            blocked := agui_internal.job_lock_problem('repack');
            if blocked is null then
                raise notice 'agui.repack does nothing more: another one is at work';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();
        if next.run_no is not null then
            begin
                select * into piece from agui_internal.repack_run(next.thread_key, next.run_no, after_seq);
                if piece.is_busy then
                    perform agui_internal.take_back_attempt('repack', next.thread_key, next.run_no);
                    busy := busy || next.thread_key;
                elsif piece.next_seq is null then
                    perform agui_internal.note_success('repack', next.thread_key, next.run_no);
                    runs := runs + 1;
                elsif pg_catalog.clock_timestamp() >= stop_at then
                    perform agui_internal.take_back_attempt('repack', next.thread_key, next.run_no);  -- the next call goes on
                    piece.next_seq := null;
                end if;
                after_seq := coalesce(piece.next_seq - 1, 0);
            exception
                when others then
                    raise warning 'agui.repack: thread with key %, run number %: %', next.thread_key, next.run_no, sqlerrm;
                    if not agui_internal.note_failure('repack', next.thread_key, next.run_no, sqlstate, sqlerrm) then
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
                    perform agui_internal.prune_snapshots(near);  -- its log is smaller now
                exception
                    when others then
                        raise warning 'agui.repack: snapshots of the thread with key %: %', near, sqlerrm;
                end;
            end if;
            exit when next.thread_key is null;
            perform agui_internal.note_attempt('repack', next.thread_key, next.run_no);
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
            message = pg_catalog.format('%s of the runs could not be repacked: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The others are done. agui.quarantine says when these are tried next, agui.retry lets the next call do so at once.';
    end if;
    commit;
end
$$;

comment on procedure agui.repack(int, interval, interval) is
    'Joins the batches of runs that ended at least older_than ago (null: agui_internal.repack_after()) into '
    'larger ones: live batches of a few events take several times what they take joined. Nobody who reads or '
    'repeats an append sees a difference. Commits every 50,000 events and stops after max_runs or max_time (null: when '
    'all are done), also within a run, so it can be cut off and called again at any time. A run that fails does not hold up the '
    'others: it goes into agui.quarantine, and is the error in the end. A thread that another transaction '
    'holds is left for later. Call it outside a transaction block.';

revoke execute on procedure agui.repack(int, interval, interval) from public;
