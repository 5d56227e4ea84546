create or replace procedure agui.compact(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default '0'
)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Every name is qualified instead.
as $$
declare
    stop_at timestamptz := pg_catalog.clock_timestamp() + max_time;
    -- Without older_than a run is due even if the clock was set back since it ended.
    due_by  timestamptz := case when older_than > '0' then pg_catalog.clock_timestamp() - older_than else 'infinity' end;
    claim   record;
    from_at timestamptz := '-infinity';
    key     uuid;  -- the thread at hand
    run_no  int;
    carried agui_internal.carried_fold;
    runs    int := 0;
    failed  uuid[] := '{}';
    failure text;
    code    text;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact does nothing on a standby';
        return;
    end if;
    loop
        exit when runs >= max_runs or pg_catalog.clock_timestamp() >= stop_at;
        -- It goes with each commit, and so leaves nothing behind in a pooled connection.
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact')) then
            raise notice 'agui.compact does nothing more: another one is at work';
            exit;
        end if;
        -- No commit need wait for the disk: what a crash takes back is made again from the log.
        perform pg_catalog.set_config('synchronous_commit', 'off', true);

        -- The thread at hand comes first, for its next run goes on from what the last one meant. Others may have had it since.
        perform from agui.thread as thread where thread.thread_key = key for no key update skip locked;
        if found then
            run_no := agui_internal.next_to_compact(key, due_by);
        end if;
        if not found or run_no is null then
            -- Threads that someone else holds are passed over. Those that were just let go may still look unprocessed here: the next
            -- statement, with a snapshot of its own, knows better. Going on from the last claim spares the index entries of all runs
            -- done since then, which only vacuum removes.
            select run.thread_key, run.ended_at into claim
            from agui.run as run
            join agui.thread as thread on thread.thread_key = run.thread_key
            where run.log_bytes is null
                and run.status <> 'running'
                and run.ended_at between from_at and due_by
                and run.thread_key <> all (failed)
            order by run.ended_at
            limit 1
            for no key update of thread skip locked;
            if not found then
                exit when from_at = '-infinity';
                from_at := '-infinity';  -- what was held before may be free now
                continue;
            end if;
            from_at := claim.ended_at;
            key := claim.thread_key;
            run_no := agui_internal.next_to_compact(key, due_by);
        end if;

        if run_no is not null then
            begin
                carried := agui_internal.compact_run(key, run_no, carried);
                perform agui_internal.fill_title(key);
                runs := runs + 1;
            exception
                when others then
                    raise warning 'agui.compact: thread with key %, run number %: %', key, run_no, sqlerrm;
                    failed := failed || key;
                    key := null;
                    failure := coalesce(failure, sqlerrm);
                    code := coalesce(code, sqlstate);
            end;
        end if;
        commit;
    end loop;

    -- Most of the log is stored as small batches until it is repacked. A role that only compacts may not rewrite the log.
    if pg_catalog.has_table_privilege('agui.batch', 'delete') then
        call agui.repack(max_runs, stop_at - pg_catalog.clock_timestamp());
    end if;

    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('compaction failed for %s of the threads: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their keys: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The other threads are done; these are tried again by the next call.';
    end if;
end
$$;

comment on procedure agui.compact(int, interval, interval) is
    'Folds ended runs that have not been processed yet, thread by thread, the oldest first, and keeps the '
    'snapshots that the rules ask for; then, where the role has the rights of agui_maintainer, calls '
    'agui.repack for those that ended long enough ago. Stops after max_runs runs or after max_time (null: '
    'when all are done), and leaves alone what ended less than older_than ago. Commits run by run, so it can '
    'be cut off and called again at any time; a thread that fails does not hold up the others and is the '
    'error in the end. With a notice, it does nothing while another session or pgagui compact is at work, and '
    'on a standby. Call it from pg_cron, or by hand outside a transaction block.';

revoke execute on procedure agui.compact(int, interval, interval) from public;
