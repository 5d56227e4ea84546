create or replace function agui_internal.compact_sequence(
    thread_key uuid,
    run_nos    int[],
    carried    agui_internal.carried_fold default null,
    stop_at    timestamptz default null
)
returns agui_internal.carried_fold
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    runs       record;
    run        agui.run;  -- the last one
    result     agui_internal.carried_fold;
    fold       agui_internal.fold;
    is_one     constant boolean := cardinality(run_nos) = 1;
    start_no   int;  -- the run whose snapshot the fold starts from
    held       int4multirange;
    size       record;
    is_tip     boolean;
    is_kept    boolean;
    old_tip    int;
begin
    perform agui_internal.own_key(thread_key);
    select
        array_agg(ended.first_seq - 1 order by list.position) as after_seqs,
        array_agg(ended.last_seq order by list.position) as through_seqs,
        array_agg(measured.n order by list.position) as ns,
        array_agg(measured.log_bytes order by list.position) as log_bytes,
        sum(measured.log_bytes) as all_log_bytes,
        array_agg(ended.run_id order by list.position) filter (
            where not exists (
                select
                from agui_internal.batch_with(ended.thread_key, ended.last_seq) as batch
                where batch.run_no = ended.run_no and batch.first_seq + batch.n > ended.last_seq
            )
        ) as damaged_ids
    into runs
    from unnest(run_nos) with ordinality as list (run_no, position)
    join agui.run as ended
        on ended.thread_key = compact_sequence.thread_key and ended.run_no = list.run_no
    cross join lateral agui_internal.run_size(ended.thread_key, ended.run_no, ended.last_seq) as measured;
    select last.* into run
    from agui.run as last
    where last.thread_key = compact_sequence.thread_key and last.run_no = run_nos[cardinality(run_nos)];

    if runs.damaged_ids is not null then
        raise exception using
            errcode = 'data_corrupted',
            message = format('the log has no event at seq %s, where run "%s" ends', (
                select damaged.last_seq
                from agui.run as damaged
                where damaged.thread_key = run.thread_key and damaged.run_id = runs.damaged_ids[1]
            ), runs.damaged_ids[1]),
            hint = 'agui.verify names all that is wrong with the thread.';
    end if;

    -- Between two commits, other transactions may have changed the thread: its log, its snapshots,
    -- or the whole thread may be gone or new.
    if exists (
        select
        from agui.run as first
        join agui.run as parent
            on parent.thread_key = first.thread_key and parent.run_no = first.parent_no
        left join agui.snapshot as base
            on base.thread_key = parent.thread_key and base.run_no = carried.base_no
        where first.thread_key = run.thread_key
            and first.run_no = run_nos[1]
            and parent.thread_key = carried.thread_key
            and parent.run_no = carried.run_no
            and parent.last_seq = (carried.fold).through_seq
            and parent.ended_at = carried.ended_at
            and base.created_at is not distinct from carried.base_at
    ) then
        result.base_no := carried.base_no;
        result.base_is_tip := carried.base_is_tip;
        fold := agui_internal.fold_runs(carried.fold, thread_key, run_nos, runs.after_seqs, runs.through_seqs, case when is_one then stop_at end);
        result.log_bytes := carried.log_bytes + runs.all_log_bytes;
        -- Patches wait until a snapshot is kept or there are many of them: most often the next run
        -- begins with another state.
        if octet_length(array_to_string(fold.state_patches, '')) > octet_length(fold.state) / 4 then
            fold := agui_internal.fold_patched(fold);
        end if;
    else
        -- The run itself may have a snapshot, from when it was in progress or from a call that ran
        -- out of time.
        start_no := case
            when is_one then agui_internal.fold_base(thread_key, run.run_no, run.last_seq)
            else agui_internal.strict_base(thread_key, run_nos[1])
        end;
        fold := agui_internal.fold_run(thread_key, run.run_no, run.last_seq, start_no, case when is_one then stop_at end);
        result.base_no := case when start_no = run.run_no then agui_internal.strict_base(thread_key, run.run_no) else start_no end;
        result.base_is_tip := true;
        result.log_bytes := agui_internal.log_bytes_since(thread_key, run_nos[1], result.base_no) + runs.all_log_bytes;
    end if;

    if fold.through_seq < run.last_seq and exists (
        select
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq > fold.through_seq and batch.first_seq <= run.last_seq
    ) then
        perform agui_internal.write_snapshot(thread_key, run.run_no, fold);
        result := null;
        result.is_cut := true;
        return result;
    end if;

    is_tip := not exists (
        select
        from agui.run as younger
        where younger.thread_key = run.thread_key
            and younger.run_no > run.run_no
            and younger.status <> 'running'
    );
    is_kept := is_tip;
    if not is_tip then
        if start_no = run.run_no then
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
    is_kept := is_kept and not agui_internal.awaits_start(thread_key, run.run_no, run.last_seq);

    if not is_kept or not is_one then
        -- a snapshot of a part of a run may remain
        perform agui_internal.drop_snapshots(thread_key, case when is_kept then trim_array(run_nos, 1) else run_nos end);
    end if;
    if is_kept then
        fold := agui_internal.write_snapshot(thread_key, run.run_no, fold);
        old_tip := agui_internal.previous_tip(thread_key, run.run_no);
        if old_tip is not null and (old_tip is distinct from result.base_no or result.base_is_tip) then
            perform agui_internal.drop_needless_snapshot(thread_key, old_tip);
        end if;
        result.base_no := run.run_no;
        result.base_is_tip := is_tip;
        result.log_bytes := 0;
    end if;

    -- Last, because an append waits while the rows are held. If something was appended after the end
    -- of a run in the meantime, it is processed a second time, from this snapshot on.
    perform agui_internal.mark_compacted(thread_key, run_nos, runs.through_seqs, runs.ns, runs.log_bytes);

    if start_no = run.run_no and not is_kept then
        return null;  -- the messages that the fold refers to are deleted
    end if;
    result.thread_key := thread_key;
    result.run_no := run.run_no;
    result.ended_at := run.ended_at;
    result.fold := fold;
    result.base_at := (
        select base.created_at
        from agui.snapshot as base
        where base.thread_key = run.thread_key and base.run_no = result.base_no
    );
    return result;
end
$$;

comment on function agui_internal.compact_sequence(uuid, int[], agui_internal.carried_fold, timestamptz) is
    'Compacts ended runs, each the parent of the next: measures their log, folds their lineage, and '
    'keeps the result as the snapshot of the last one if that is the tip of its thread (the '
    'youngest run that has ended) or agui_internal.is_worth_keeping says so. carried is the result '
    'of the call for the parent of the first (null: none). The fold continues from there if that '
    'is still valid, else from the nearest snapshot. Returns the same for the runs that follow. If '
    'there is one run, it ends from stop_at on (null: no limit) with a snapshot of a part of the '
    'run, from which the next call continues, and returns is_cut. The caller holds the row of the '
    'thread.';

revoke execute on function agui_internal.compact_sequence(uuid, int[], agui_internal.carried_fold, timestamptz) from public;
