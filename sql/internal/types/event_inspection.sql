create type agui_internal.event_inspection as (
    n             int,
    begins_with   text,
    parent_run_id text,
    restarts_at   int,
    ended_by      text,
    late_at       int,
    other_thread  text
);

comment on type agui_internal.event_inspection is
    'What the events of one call mean to the life cycle of their run: how many they are; the type of the first, where it is RUN_STARTED, RUN_FINISHED '
    'or RUN_ERROR, and the parentRunId of that RUN_STARTED; at which position the first RUN_STARTED behind it is; the type of the last event that ends the run; '
    'the position of the first event behind an end (RUN_ERROR may follow RUN_FINISHED); and the threadId of a RUN_STARTED that names another thread. '
    'Ids are guarded, see agui_internal.json_guard.';
