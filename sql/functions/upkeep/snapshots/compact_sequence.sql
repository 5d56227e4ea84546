create or replace function agui_internal.compact_sequence(
    thread_key uuid,
    run_nos    int[],
    carried    agui_internal.carried_fold default null,
    stop_at    timestamptz default null,
    limits     agui_internal.fold_limits default null
)
returns agui_internal.carried_fold
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    is_one   constant boolean := cardinality(run_nos) = 1;
    last_no  constant int := run_nos[cardinality(run_nos)];
    runs     record;
    last_seq bigint;  -- of the last run
    result   agui_internal.carried_fold;
    fold     agui_internal.fold;
    start_no int;  -- the run whose snapshot the fold starts from
    held     int4multirange;
    size     record;
    is_carried boolean := false;
    is_kept  boolean;
    old_tip  int;
begin
    perform agui_internal.own_key(thread_key);
    -- All that the rows say, in one statement: for a short run, each further one counts.
    select
        array_agg(measured.first_seq - 1) as after_seqs,
        array_agg(measured.last_seq) as through_seqs,
        array_agg(measured.n) as ns,
        array_agg(measured.batches) as batches,
        array_agg(measured.log_bytes) as log_bytes,
        sum(measured.log_bytes) as all_log_bytes,
        bool_or(measured.has_input) as has_input,
        count(*) filter (where measured.is_due) as due_n,
        (array_agg(measured.parent_no))[1] as parent_no,
        (array_agg(measured.ended_at))[cardinality(run_nos)] as ended_at,
        array_agg(measured.run_no) filter (where (measured.end_seq = measured.last_seq + 1 and measured.is_dense) is not true) as doubtful_nos,
        not exists (
            select
            from agui.run as younger
            where younger.thread_key = compact_sequence.thread_key
                and younger.run_no > last_no
                and younger.status <> 'running'
        ) as is_tip,
        exists (
            select from agui.run as child where child.thread_key = compact_sequence.thread_key and child.parent_no = last_no
        ) as has_children,
        exists (select from agui.snapshot as stored where stored.thread_key = compact_sequence.thread_key) as has_snapshots
    into runs
    from (
        select
            ended.run_no, ended.parent_no, ended.first_seq, ended.last_seq, ended.ended_at,
            ended.log_bytes is null
                and ended.status <> 'running'
                and (list.position = 1 or ended.parent_no = run_nos[list.position::int - 1]) as is_due,
            given.bytes is not null as has_input,
            log.n, log.batches, log.end_seq, log.is_dense, log.bytes + coalesce(given.bytes, 0) as log_bytes
        from unnest(run_nos) with ordinality as list (run_no, position)
        join agui.run as ended
            on ended.thread_key = compact_sequence.thread_key and ended.run_no = list.run_no
        cross join lateral (
            select
                sum(batch.n) as n, count(*) as batches, max(batch.first_seq + batch.n) as end_seq,
                bool_and(batch.first_seq = batch.expected_seq and json_array_length(batch.events) = batch.n) as is_dense,
                sum(agui_internal.stored_bytes(batch.events, batch.earlier_us))::bigint as bytes
            from (
                select stored.*, lag(stored.first_seq + stored.n, 1, ended.first_seq) over (order by stored.first_seq) as expected_seq
                from agui.batch as stored
                where stored.thread_key = ended.thread_key
                    and stored.run_no = ended.run_no
                    and stored.first_seq >= ended.first_seq and stored.first_seq <= ended.last_seq
            ) as batch
        ) as log
        left join lateral (
            select agui_internal.input_bytes(beside.thread_key, beside.run_no) as bytes
            from agui.run_input as beside
            where beside.thread_key = ended.thread_key and beside.run_no = ended.run_no
        ) as given on true
        order by list.position
    ) as measured;
    if runs.due_n < cardinality(run_nos) then
        result.is_done := true;
        return result;
    end if;
    last_seq := runs.through_seqs[cardinality(run_nos)];

    if runs.doubtful_nos is not null then
        -- Runs that were in progress at the same time, or damage.
        perform agui_internal.refuse_damaged_log(thread_key, doubtful_no) from unnest(runs.doubtful_nos) as doubtful_no;
    end if;

    -- Between two commits, other transactions may have changed the thread: its log, its snapshots,
    -- or the whole thread may be gone or new.
    if carried.thread_key = thread_key and carried.run_no = runs.parent_no and exists (
        select
        from agui.run as parent
        left join agui.snapshot as base
            on base.thread_key = parent.thread_key and base.run_no = carried.base_no
        where parent.thread_key = carried.thread_key
            and parent.run_no = carried.run_no
            and parent.last_seq = (carried.fold).through_seq
            and parent.ended_at = carried.ended_at
            and base.created_at is not distinct from carried.base_at
    ) then
        result.base_no := carried.base_no;
        result.base_is_tip := carried.base_is_tip;
        result.log_bytes := carried.log_bytes;
        fold := carried.fold;
        is_carried := true;
    elsif runs.parent_no is null and not runs.has_snapshots then
        fold := agui_internal.fold_empty();
        result.base_is_tip := true;
    end if;
    if fold.through_seq is not null then
        if runs.has_input then
            fold := agui_internal.fold_runs(
                fold, thread_key, run_nos, runs.after_seqs, runs.through_seqs, case when is_one then stop_at end, limits
            );
        else
            fold.spent := 0;
            fold := agui_internal.fold_events(
                fold, thread_key, run_nos, runs.after_seqs, runs.through_seqs, stop_at => case when is_one then stop_at end, limits => limits
            );
        end if;
        result.log_bytes := coalesce(result.log_bytes, 0) + runs.all_log_bytes;
        -- Patches wait until a snapshot is kept or there are many of them: most often the next run
        -- begins with another state.
        if octet_length(array_to_string(fold.state_patches, '')) > octet_length(fold.state) / 4 then
            fold := agui_internal.fold_patched(fold, limits);
        end if;
    else
        -- The run itself may have a snapshot, from when it was in progress or from a call that ran
        -- out of time.
        start_no := case
            when is_one then agui_internal.fold_base(thread_key, last_no, last_seq)
            else agui_internal.strict_base(thread_key, run_nos[1])
        end;
        fold := agui_internal.fold_run(thread_key, last_no, last_seq, start_no, case when is_one then stop_at end);
        result.base_no := case when start_no = last_no then agui_internal.strict_base(thread_key, last_no) else start_no end;
        result.base_is_tip := true;
        result.log_bytes := agui_internal.log_bytes_since(thread_key, run_nos[1], result.base_no) + runs.all_log_bytes;
    end if;

    if fold.through_seq < last_seq then
        if exists (
            select
            from agui.batch as batch
            where batch.thread_key = compact_sequence.thread_key
                and batch.run_no = last_no
                and batch.first_seq > fold.through_seq and batch.first_seq <= last_seq
        ) then
            perform agui_internal.write_snapshot(thread_key, last_no, fold);
            result := null;
            result.is_cut := true;
            return result;
        end if;
    end if;

    is_kept := runs.is_tip;
    if not is_kept then
        if start_no = last_no then
            held := agui_internal.held_messages(thread_key, result.base_no);
        end if;
        -- These sizes are uncompressed. The stored sizes will be smaller, so the rule keeps too few
        -- snapshots rather than too many.
        select
            octet_length(fold.state) + octet_length(array_to_string(fold.state_patches, '')) + octet_length(fold.interrupts) as document_bytes,
            coalesce(sum(octet_length(message.body)), 0) as message_bytes,
            count(*) filter (where message.is_new) as new_messages,
            coalesce(sum(octet_length(message.body)) filter (where message.is_new), 0) as new_bytes
        into size
        from (
            select listed.body, coalesce(listed.message_no, 0) <= 0 or not listed.message_no <@ held as is_new
            from unnest(fold.message_nos, fold.bodies) as listed (message_no, body)
        ) as message;

        result.bytes := size.document_bytes + size.message_bytes;
        is_kept := agui_internal.is_worth_keeping(
            result.log_bytes, agui_internal.snapshot_bytes(size.document_bytes, size.new_messages, size.new_bytes)
        );
    end if;
    -- A later RUN_STARTED would change what the events before it mean.
    if is_kept and runs.has_input then
        is_kept := not agui_internal.awaits_start(thread_key, last_no, last_seq);
    end if;

    if runs.has_snapshots and (not is_kept or not is_one) then
        -- a snapshot of a part of a run may remain
        perform agui_internal.drop_snapshots(thread_key, case when is_kept then trim_array(run_nos, 1) else run_nos end);
    end if;
    if is_kept then
        fold := agui_internal.write_snapshot(thread_key, last_no, fold);
        if runs.has_snapshots then
            old_tip := agui_internal.previous_tip(thread_key, last_no);
        end if;
        if old_tip is not null and (old_tip is distinct from result.base_no or result.base_is_tip) then
            perform agui_internal.drop_needless_snapshot(thread_key, old_tip);
        end if;
        result.base_no := last_no;
        result.base_is_tip := runs.is_tip;
        result.log_bytes := 0;
    end if;

    -- Last, because an append waits while the rows are held. If something was appended after the end
    -- of a run in the meantime, it is processed a second time, from this snapshot on.
    perform agui_internal.mark_compacted(thread_key, run_nos, runs.through_seqs, runs.ns, runs.log_bytes, runs.batches);

    if not runs.has_children and is_carried then
        return carried;  -- what follows may be another child of the same parent
    end if;
    if runs.is_tip or start_no = last_no and not is_kept then
        return null;  -- nothing follows, or the messages that the fold refers to are deleted
    end if;
    result.thread_key := thread_key;
    result.run_no := last_no;
    result.ended_at := runs.ended_at;
    result.fold := fold;
    result.base_at := (
        select base.created_at
        from agui.snapshot as base
        where base.thread_key = compact_sequence.thread_key and base.run_no = result.base_no
    );
    return result;
end
$$;

comment on function agui_internal.compact_sequence(uuid, int[], agui_internal.carried_fold, timestamptz, agui_internal.fold_limits) is
    'Compacts ended runs, each the parent of the next: measures their log, folds their lineage, and '
    'keeps the result as the snapshot of the last one if that is the tip of its thread (the '
    'youngest run that has ended) or agui_internal.is_worth_keeping says so. carried is the result '
    'of the call for the parent of the first (null: none). The fold continues from there if that '
    'is still valid, else from the nearest snapshot. Returns the same for the runs that follow (null: '
    'none can); after a leaf, that is carried. If '
    'there is one run, it ends from stop_at on (null: no limit) with a snapshot of a part of the '
    'run, from which the next call continues, and returns is_cut. If the runs were compacted since '
    'they were chosen, it only returns is_done. limits: null reads them. The caller holds the row of '
    'the thread.';

revoke execute on function agui_internal.compact_sequence(uuid, int[], agui_internal.carried_fold, timestamptz, agui_internal.fold_limits) from public;
