create type agui_internal.life_event as (
    run_no        int,
    place         bigint,
    seq           bigint,
    type          text,
    status        text,
    is_late       boolean,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    input         json
);

comment on type agui_internal.life_event is
    'RUN_STARTED, RUN_FINISHED or RUN_ERROR in the log. place counts the events of its run, from '
    '1. status is that of the run after it; is_late: it has no effect, because it comes after RUN_ERROR '
    'and before the next RUN_STARTED. thread_id, run_id, parent_run_id and input are those that the event states, all guarded '
    '(agui_internal.json_guard): a backslash is an escape.';
