-- What agui_internal.compact_run hands on to the next run of the lineage, so that each run is folded once and not again and again from the last
-- snapshot.
create type agui_internal.carried_fold as (
    thread_key  uuid,
    run_no      int,
    ended_at    timestamptz,
    fold        agui_internal.fold,
    base_no     int,
    base_at     timestamptz,
    base_is_tip boolean,
    log_bytes   bigint,
    is_cut      boolean
);

comment on type agui_internal.carried_fold is
    'What a lineage means after the run run_no, which ended at ended_at. base_no is the last run on it that has a snapshot, made at '
    'base_at: where the fold points to stored messages, it holds them. base_is_tip: it may have its snapshot for having been the tip. '
    'log_bytes: stored bytes of log on the lineage since that run. is_cut: the time was over before the end of the run, which waits for the next call; '
    'all else is null.';
