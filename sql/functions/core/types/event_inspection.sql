create type agui_internal.event_inspection as (
    n             int,
    begins_with   text,
    parent_run_id text,
    restarts_at   int,
    reopens_at    int,
    status        text,
    ends_at       int,
    cut_off_reason text,
    late_at       int,
    other_thread  text,
    begins_unnamed boolean,
    asks          boolean,
    is_finish     boolean
);

comment on type agui_internal.event_inspection is
    'What the events of one call mean for the life cycle of their run. n: their number. '
    'begins_with: the type of the first, if it is RUN_STARTED, RUN_FINISHED or RUN_ERROR. '
    'parent_run_id: the parentRunId of that RUN_STARTED. restarts_at: the position of the first '
    'RUN_STARTED after it, reopens_at that of the last one. status: the status of the run after the last event that ends it (null: '
    'there is none), ends_at the position of that event, and cut_off_reason what it says if it is '
    'the end that agui_internal.close_run writes. late_at: the position of the first event after an '
    'end (RUN_ERROR may follow RUN_FINISHED). other_thread: the threadId of a RUN_STARTED that '
    'names another thread. begins_unnamed: the event of begins_with has '
    'neither a runId nor a threadId. asks: whether the run has asked since its last beginning or end (null: as '
    'before the call). is_finish: status is that of a plain end, so that it is interrupted if the run had asked before the '
    'call. Ids are guarded, see agui_internal.json_guard.';
