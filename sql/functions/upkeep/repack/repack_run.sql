create or replace function agui_internal.repack_run(
    thread_key uuid,
    run_no     int,
    after_seq  bigint default 0,
    out next_seq bigint,
    out joined   int,
    out is_busy  boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The limits of a joined batch. Larger ones compress little better, and reading a few events
    -- opens a whole batch.
    max_bytes  constant int := 64 * 1024;
    max_events constant int := 1000;
    -- earlier_us is an int, so a longer pause begins a new batch.
    max_pause  constant interval := '30 minutes';
    -- Appends to the thread wait meanwhile, so a call processes a bounded piece of a long run.
    max_events_per_call constant int := 50000;
    run       agui.run;
    next_batch record;
    from_seq  bigint;  -- the batches gathered so far: where they begin,
    last_seq  bigint;  -- the first seq of the last of them,
    end_seq   bigint;  -- the seq after them
    began_at  timestamptz;
    gathered  int := 0;
    n         int := 0;
    bytes     int := 0;
    -- events in joined batches; batches that an earlier call has joined cost next to nothing
    done      int := 0;
begin
    perform agui_internal.own_key(thread_key);
    joined := 0;
    is_busy := true;
    -- The lock excludes writers. The new version of the row of the thread makes transactions
    -- outside READ COMMITTED, which may not see these changes, fail with 40001. A thread that an
    -- open transaction or a compactor holds is postponed.
    if not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) then
        return;
    end if;
    perform from agui.thread as thread where thread.thread_key = repack_run.thread_key for no key update skip locked;
    if not found then
        is_busy := exists (select from agui.thread as thread where thread.thread_key = repack_run.thread_key);
        return;
    end if;
    is_busy := false;
    update agui.thread as thread set created_at = created_at where thread.thread_key = repack_run.thread_key;

    select * into run
    from agui.run as ended
    where ended.thread_key = repack_run.thread_key and ended.run_no = repack_run.run_no and ended.status <> 'running';
    if not found then
        return;  -- erased in the meantime
    end if;
    if after_seq = 0 then
        perform agui_internal.refuse_damaged_log(run.thread_key, run.run_no);
    end if;

    for next_batch in
        select
            batch.first_seq, batch.n, batch.recorded_at,
            agui_internal.batch_bytes(batch.events, batch.text_bytes) as bytes,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[1]) as began_at
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq >= run.first_seq and batch.first_seq <= run.last_seq
            and batch.first_seq > after_seq
        order by batch.first_seq
    loop
        if gathered > 0 and (
            next_batch.first_seq <> end_seq  -- events of another run lie between
            or n + next_batch.n > max_events
            or bytes + next_batch.bytes > max_bytes
            or next_batch.recorded_at - began_at > max_pause
        ) then
            if gathered > 1 then
                perform agui_internal.join_batches(run.thread_key, from_seq, last_seq);
                joined := joined + gathered - 1;
                done := done + n;
            end if;
            gathered := 0;
            if done >= max_events_per_call then
                next_seq := next_batch.first_seq;
                exit;
            end if;
        end if;
        if gathered = 0 then
            from_seq := next_batch.first_seq;
            began_at := next_batch.began_at;
            n := 0;
            bytes := 0;
        end if;
        gathered := gathered + 1;
        last_seq := next_batch.first_seq;
        end_seq := next_batch.first_seq + next_batch.n;
        n := n + next_batch.n;
        bytes := bytes + next_batch.bytes;
    end loop;
    if gathered > 1 then
        perform agui_internal.join_batches(run.thread_key, from_seq, last_seq);
        joined := joined + gathered - 1;
    end if;
    if next_seq is not null then
        return;
    end if;

    update agui.run as repacked
    set repacked_at = clock_timestamp(),
        -- Compaction compares snapshots with the stored size of the log.
        log_bytes = case when repacked.log_bytes is not null then (agui_internal.run_size(run.thread_key, run.run_no, run.last_seq)).log_bytes end
    where repacked.thread_key = run.thread_key and repacked.run_no = run.run_no;
end
$$;

comment on function agui_internal.repack_run(uuid, int, bigint) is
    'Joins the batches of an ended run into larger ones, which compress better. Events, seqs and '
    'times do not change. A call processes a bounded piece: the next call continues with after_seq '
    '=> next_seq - 1; null: the run is done and marked. joined is the number of batches removed. '
    'is_busy: another transaction holds the thread, and nothing is done.';

revoke execute on function agui_internal.repack_run(uuid, int, bigint) from public;
