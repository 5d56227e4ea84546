-- The small batches of ended runs become large ones.
--
-- PostgreSQL compresses a row from 2 KB on, so the batches of a live agent, a few events each, take
-- several times what they take joined. Once a run has ended longer ago than agui.repack_after,
-- adjacent batches of it are joined, up to 64 KB or 1,000 events.
--
--    batch 7 │ batch 8 │ batch 9   ─►   batch 7   recorded_at: that of the last event
--                                                 earlier_us: how much earlier each event came
--                                                 links: how many events each link of a chain had
--
-- - Bytes, seqs and times stay. Before a commit repack_run reads back what it wrote and compares.
-- - It holds the advisory lock of the thread, as appends do, and writes the row of the thread, so a
--   transaction with an older snapshot gets 40001. A statement sees the batches before or after,
--   never between. Readers that continue by seq find the batch with the next seq, whatever its
--   borders.
-- - A long run takes pieces of 50,000 events, because appends to the thread wait meanwhile.
-- - A smaller log pays for fewer snapshots. prune_snapshots drops the others, unless another
--   transaction holds the thread.
-- - It passes the triggers that protect the log by a setting of the transaction (allow_log_change),
--   which counts for the owner of the tables only.

create or replace function agui_internal.next_to_repack(
    near        uuid,
    older_than  interval,
    passed_over uuid[] default '{}',
    after_no    int default 0,
    out thread_key uuid,
    out run_no     int
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due_before timestamptz := now() - coalesce(older_than, agui_internal.repack_after());
    own        record;
begin
    near := agui_internal.visible_key(near);
    select * into own from agui_internal.own_keys();
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui.run as run
    where run.thread_key = near and run.run_no > after_no and run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        and run.thread_key <> all (passed_over)
        and not exists (
            select
            from agui_internal.job_note as note
            where note.job = 'repack' and note.thread_key = run.thread_key and note.run_no = run.run_no
        )
    order by run.run_no
    limit 1;
    if found then
        return;
    end if;
    -- Runs of the thread near that have become due before after_no meanwhile are among these.
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui.run as run
    where run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        and run.thread_key <> all (passed_over)
        -- As a case expression, the condition cannot make the planner choose another index than
        -- that of the queue.
        and case when agui_internal.has_row_security() then run.thread_key >= own.low and run.thread_key <= own.high else true end
        and not exists (
            select
            from agui_internal.job_note as note
            where note.job = 'repack' and note.thread_key = run.thread_key and note.run_no = run.run_no
        )
    order by run.ended_at
    limit 1;
    if found then
        return;
    end if;
    -- Last, runs of an earlier attempt that did not succeed.
    select run.thread_key, run.run_no
    into next_to_repack.thread_key, next_to_repack.run_no
    from agui_internal.job_note as note
    join agui.run as run
        on run.thread_key = note.thread_key and run.run_no = note.run_no
    where note.job = 'repack' and (note.next_at is null or note.next_at <= clock_timestamp())
        and run.repacked_at is null and run.status <> 'running' and run.ended_at <= due_before
        and run.thread_key <> all (passed_over)
        and run.thread_key >= own.low and run.thread_key <= own.high
    order by note.attempts, note.noted_at
    limit 1;
end
$$;

comment on function agui_internal.next_to_repack is
    'The next run to repack, one that ended at least older_than ago (null: '
    'agui_internal.repack_after()): a run of the thread near after the run after_no, which avoids '
    'reading the runs already done, while there is one; then the run that ended first; finally one '
    'with a failed attempt that may be retried now. Only in scopes of the role. Nulls: there is none.';

create or replace function agui_internal.repack_after()
returns interval
language sql
stable
parallel safe
return coalesce(nullif(current_setting('agui.repack_after', true), ''), '10 minutes')::interval;

comment on function agui_internal.repack_after is
    'How long ago a run must have ended before its batches are joined: the setting '
    'agui.repack_after, by default 10 minutes.';

-- role: worker
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

comment on function agui_internal.repack_run is
    'Joins the batches of an ended run into larger ones, which compress better. Events, seqs and '
    'times do not change. A call processes a bounded piece: the next call continues with after_seq '
    '=> next_seq - 1; null: the run is done and marked. joined is the number of batches removed. '
    'is_busy: another transaction holds the thread, and nothing is done.';

create or replace function agui_internal.join_batches(thread_key uuid, from_seq bigint, through_seq bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    joined_at   timestamptz;
    payloads    text[];
    times       timestamptz[];
    new_hash    bytea;
    new_links   int[];
    new_payloads text[];
    new_times    timestamptz[];
begin
    select
        max(batch.recorded_at),
        array_agg(element.payload::text order by batch.first_seq, element.position),
        array_agg(agui_internal.event_time(batch.recorded_at, element.earlier_us) order by batch.first_seq, element.position)
    into joined_at, payloads, times
    from agui.batch as batch
    cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
        as element (payload, earlier_us, position)
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq between from_seq and through_seq;

    -- The links are preserved: the number of events in each, and the hash of the last.
    select
        (array_agg(batch.hash order by batch.first_seq desc))[1],
        array_agg(link.n order by batch.first_seq, link.position) filter (where batch.hash is not null)
    into new_hash, new_links
    from agui.batch as batch
    cross join lateral unnest(coalesce(batch.links, array[batch.n])) with ordinality as link (n, position)
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq between from_seq and through_seq;

    perform agui_internal.allow_log_change(true);
    delete from agui.batch as batch
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq > from_seq and batch.first_seq <= through_seq;
    update agui.batch as batch
    set n = cardinality(payloads),
        recorded_at = joined_at,
        events = ('[' || array_to_string(payloads, ',') || ']')::json,
        text_bytes = octet_length(array_to_string(payloads, ',')) + 2,
        hash = new_hash,
        links = new_links,
        earlier_us = (
            select array_agg((extract(epoch from joined_at - event.recorded_at) * 1000000)::int order by event.position)
            from unnest(times) with ordinality as event (recorded_at, position)
        )
    where batch.thread_key = join_batches.thread_key and batch.first_seq = from_seq;
    perform agui_internal.allow_log_change(false);

    -- From now on readers must get exactly what they got before, to the byte and to the
    -- microsecond.
    select
        array_agg(element.payload::text order by element.position),
        array_agg(agui_internal.event_time(batch.recorded_at, element.earlier_us) order by element.position)
    into new_payloads, new_times
    from agui.batch as batch
    cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
        as element (payload, earlier_us, position)
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq between from_seq and through_seq;
    if new_payloads is distinct from payloads or new_times is distinct from times then
        raise exception using
            errcode = 'data_corrupted',
            message = format('the batches from seq %s to %s of thread key %s would not be read back unchanged, so they are not joined',
                from_seq, through_seq, thread_key);
    end if;
end
$$;

comment on function agui_internal.join_batches is
    'Joins the adjacent batches whose first seqs are in a range into one batch, reads it back, and '
    'fails unless every event is the same, byte for byte, with the same time. The caller holds the '
    'lock of the thread and has updated its row.';
