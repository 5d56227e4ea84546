create or replace procedure agui.repack(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default null
)
language plpgsql
-- No SET clause: a procedure that has one cannot commit. Every name is qualified instead.
as $$
declare
    stop_at timestamptz := pg_catalog.clock_timestamp() + max_time;
    due     record;
    key     uuid;  -- the thread at hand
    piece   record;
    runs    int := 0;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.repack does nothing on a standby';
        return;
    end if;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('repack')) then
            raise notice 'agui.repack does nothing: another one is at work';
            return;
        end if;
        if runs >= max_runs or pg_catalog.clock_timestamp() >= stop_at then
            perform agui_internal.prune_snapshots(key);
            exit;
        end if;
        -- No commit need wait for the disk: after a crash the batches are as they were before.
        perform pg_catalog.set_config('synchronous_commit', 'off', true);
        select * into due from agui_internal.next_to_repack(key, older_than);
        if key is distinct from due.thread_key then
            perform agui_internal.prune_snapshots(key);  -- its log is smaller now
            key := due.thread_key;
        end if;
        exit when key is null;

        select * into piece from agui_internal.repack_run(key, due.run_no);
        while piece.next_seq is not null loop
            commit;
            select * into piece from agui_internal.repack_run(key, due.run_no, piece.next_seq - 1);
        end loop;
        commit;
        runs := runs + 1;
    end loop;
    commit;
end
$$;

comment on procedure agui.repack(int, interval, interval) is
    'Joins the batches of runs that ended at least older_than ago (null: agui_internal.repack_after()) into '
    'larger ones: live batches of a few events take several times what they take joined. Nobody who reads or '
    'repeats an append sees a difference. Commits run by run and stops after max_runs or max_time (null: when '
    'all are done), so it can be cut off and called again at any time. Call it outside a transaction block.';

revoke execute on procedure agui.repack(int, interval, interval) from public;
