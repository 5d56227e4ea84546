-- The result of agui_internal.compact_sequence, an input for the next runs of the lineage: so each run
-- is folded once, and not repeatedly from the last snapshot.
create type agui_internal.carried_fold as (
    thread_key  uuid,
    run_no      int,
    ended_at    timestamptz,
    fold        agui_internal.fold,
    bytes       bigint,
    base_no     int,
    base_at     timestamptz,
    base_is_tip boolean,
    log_bytes   bigint,
    is_cut      boolean,
    is_done     boolean
);

comment on type agui_internal.carried_fold is
    'The fold of a lineage after the run run_no, which ended at ended_at, and its size in bytes '
    '(null: nothing can follow). base_no is the last run on it with a snapshot, made at base_at; it '
    'holds the stored messages that the fold refers to. '
    'base_is_tip: it may have its snapshot only because it was the tip. log_bytes: stored bytes of '
    'log on the lineage since that run. is_cut: the time was over before the end of the run, which '
    'the next call continues. is_done: another transaction has compacted the runs since they were '
    'chosen. In both cases all other columns are null.';
