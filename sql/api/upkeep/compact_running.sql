create or replace procedure agui.compact_running(every_events int default 1000, max_time interval default null)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Every name is qualified instead.
as $$
declare
    stop_at   timestamptz := pg_catalog.clock_timestamp() + max_time;
    candidate record;
    latest    agui.run;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact_running does nothing on a standby';
        return;
    end if;
    for candidate in
        select run.thread_key, run.run_no
        from agui.run as run
        left join agui.snapshot as snapshot
            on snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no
        cross join lateral (
            select coalesce(pg_catalog.sum(batch.n), 0) as n
            from agui.batch as batch
            where batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq > coalesce(snapshot.through_seq, run.first_seq - 1)
        ) as news
        where run.status = 'running' and news.n >= every_events
        order by run.thread_key, run.run_no
    loop
        exit when pg_catalog.clock_timestamp() >= stop_at;
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact_running')) then
            raise notice 'agui.compact_running does nothing more: another one is at work';
            exit;
        end if;
        perform
        from agui.thread as thread
        where thread.thread_key = candidate.thread_key
        for no key update skip locked;
        if found then
            -- Looked at anew: it may have ended since, and is compaction's then.
            select run.* into latest
            from agui.run as run
            where run.thread_key = candidate.thread_key and run.run_no = candidate.run_no;
            if latest.status = 'running' and not agui_internal.awaits_start(latest.thread_key, latest.run_no, 9223372036854775807) then
                perform agui_internal.write_snapshot(latest.thread_key, latest.run_no, agui_internal.fold_at(latest, null));
                perform agui_internal.fill_title(latest.thread_key);
            end if;
        end if;
        commit;
    end loop;
end
$$;

comment on procedure agui.compact_running(int, interval) is
    'Makes or renews the snapshot of every run in progress that has had every_events events since its last '
    'one, so that a reload in the middle of a long run stays quick. Stops after max_time (null: when all are '
    'done). Commits run by run; threads that another compactor holds are passed over. With a notice, it does '
    'nothing while another session is at it, and on a standby. Call it outside a transaction block.';

revoke execute on procedure agui.compact_running(int, interval) from public;
