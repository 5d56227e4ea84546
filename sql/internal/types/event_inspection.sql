create type agui_internal.event_inspection as (
    n             int,
    starts        boolean,
    run_id        text,
    parent_run_id text,
    ended_by      text,
    ended_at      int
);

comment on type agui_internal.event_inspection is
    'What the events of one call mean to the life cycle of their run: how many they are, whether the first is RUN_STARTED, with '
    'its runId and parentRunId (guarded, see agui_internal.json_guard), and which event ends the run, at which position.';
