create or replace function agui_internal.compact_run(
    thread_key uuid,
    run_no     int,
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
    run        agui.run;
    size       record;
    result     agui_internal.carried_fold;
    fold       agui_internal.fold;
    start_no   int;  -- the run whose snapshot the fold starts from
    held       int4multirange;
    fold_bytes bigint;
    is_tip     boolean;
    is_kept    boolean;
    old_tip    int;
begin
    perform agui_internal.own_key(thread_key);
    select ended.* into run
    from agui.run as ended
    where ended.thread_key = compact_run.thread_key and ended.run_no = compact_run.run_no;
    select * into size from agui_internal.run_size(thread_key, run_no, run.last_seq);

    if not exists (
        select
        from agui_internal.batch_with(compact_run.thread_key, run.last_seq) as batch
        where batch.run_no = run.run_no and batch.first_seq + batch.n > run.last_seq
    ) then
        raise exception using
            errcode = 'data_corrupted',
            message = format('the log has no event at seq %s, where run "%s" ends', run.last_seq, run.run_id),
            hint = 'agui.verify names all that is wrong with the thread.';
    end if;

    -- Between two commits, other transactions may have changed the thread: its log, its snapshots,
    -- or the whole thread may be gone or new.
    if exists (
        select
        from agui.run as parent
        left join agui.snapshot as base
            on base.thread_key = parent.thread_key and base.run_no = carried.base_no
        where parent.thread_key = run.thread_key
            and parent.run_no = run.parent_no
            and parent.thread_key = carried.thread_key
            and parent.run_no = carried.run_no
            and parent.last_seq = (carried.fold).through_seq
            and parent.ended_at = carried.ended_at
            and base.created_at is not distinct from carried.base_at
    ) then
        result.base_no := carried.base_no;
        result.base_is_tip := carried.base_is_tip;
        fold := agui_internal.fold_runs(carried.fold, thread_key, array[run_no], array[run.first_seq - 1], array[run.last_seq], stop_at);
        result.log_bytes := carried.log_bytes + size.log_bytes;
        -- Patches wait until a snapshot is kept or there are many of them: most often the next run
        -- begins with another state.
        if octet_length(array_to_string(fold.state_patches, '')) > octet_length(fold.state) / 4 then
            fold := agui_internal.fold_patched(fold);
        end if;
    else
        -- The run itself may have a snapshot, from when it was in progress or from a call that ran
        -- out of time.
        start_no := agui_internal.fold_base(thread_key, run_no, run.last_seq);
        fold := agui_internal.fold_run(thread_key, run_no, run.last_seq, start_no, stop_at);
        result.base_no := case when start_no = run_no then agui_internal.strict_base(thread_key, run_no) else start_no end;
        result.base_is_tip := true;
        result.log_bytes := agui_internal.log_bytes_since(thread_key, run_no, result.base_no) + size.log_bytes;
    end if;

    if fold.through_seq < run.last_seq and exists (
        select
        from agui.batch as batch
        where batch.thread_key = compact_run.thread_key
            and batch.run_no = compact_run.run_no
            and batch.first_seq > fold.through_seq and batch.first_seq <= run.last_seq
    ) then
        perform agui_internal.write_snapshot(thread_key, run_no, fold);
        result := null;
        result.is_cut := true;
        return result;
    end if;

    is_tip := not exists (
        select
        from agui.run as younger
        where younger.thread_key = compact_run.thread_key
            and younger.run_no > compact_run.run_no
            and younger.status <> 'running'
    );
    is_kept := is_tip;
    if not is_tip then
        if start_no = run_no then
            held := agui_internal.held_messages(thread_key, result.base_no);
        end if;
        -- These sizes are uncompressed. The stored sizes will be smaller, so the rule keeps too few
        -- snapshots rather than too many.
        select agui_internal.snapshot_bytes(
            octet_length(fold.state) + octet_length(array_to_string(fold.state_patches, '')) + octet_length(fold.interrupts),
            count(*),
            coalesce(sum(octet_length(message.body)), 0)
        )
        into fold_bytes
        from unnest(fold.message_nos, fold.bodies) as message (message_no, body)
        where coalesce(message.message_no, 0) <= 0 or not message.message_no <@ held;

        is_kept := agui_internal.is_worth_keeping(result.log_bytes, fold_bytes);
    end if;
    -- A later RUN_STARTED would change what the events before it mean.
    is_kept := is_kept and not agui_internal.awaits_start(thread_key, run_no, run.last_seq);

    if is_kept then
        fold := agui_internal.write_snapshot(thread_key, run_no, fold);
        old_tip := agui_internal.previous_tip(thread_key, run_no);
        if old_tip is not null and (old_tip is distinct from result.base_no or result.base_is_tip) then
            perform agui_internal.drop_needless_snapshot(thread_key, old_tip);
        end if;
        result.base_no := run_no;
        result.base_is_tip := is_tip;
        result.log_bytes := 0;
    else
        -- a snapshot of a part of the run may remain
        perform agui_internal.drop_snapshot(thread_key, run_no);
    end if;

    -- Last, because an append waits while the row is held. If something was appended after the end
    -- in the meantime, the run is processed a second time, from this snapshot on.
    update agui.run as compacted
    set n = size.n, log_bytes = size.log_bytes
    where compacted.thread_key = compact_run.thread_key and compacted.run_no = compact_run.run_no and compacted.last_seq = run.last_seq;

    if start_no = run_no and not is_kept then
        return null;  -- the messages that the fold refers to are deleted
    end if;
    result.thread_key := thread_key;
    result.run_no := run_no;
    result.ended_at := run.ended_at;
    result.fold := fold;
    result.base_at := (
        select base.created_at
        from agui.snapshot as base
        where base.thread_key = compact_run.thread_key and base.run_no = result.base_no
    );
    return result;
end
$$;

comment on function agui_internal.compact_run(uuid, int, agui_internal.carried_fold, timestamptz) is
    'Compacts one ended run: measures its log, folds its lineage, and keeps the result if the run '
    'is the tip of its thread (the youngest run that has ended) or agui_internal.is_worth_keeping '
    'says so. carried is the result of the call for its parent (null: none). The fold continues '
    'from there if that is still valid, else from the nearest snapshot. Returns the same for the '
    'runs that follow. From stop_at on (null: no limit) it ends with a snapshot of a part of the '
    'run, from which the next call continues, and returns is_cut. The caller holds the row of the '
    'thread.';

revoke execute on function agui_internal.compact_run(uuid, int, agui_internal.carried_fold, timestamptz) from public;
