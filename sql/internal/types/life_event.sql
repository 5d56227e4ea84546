create type agui_internal.life_event as (
    run_no        int,
    place         bigint,
    seq           bigint,
    type          text,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    input         json
);

comment on type agui_internal.life_event is
    'RUN_STARTED, RUN_FINISHED or RUN_ERROR in the log: place counts the events of its run, 1 is the first; thread_id, run_id and parent_run_id are those '
    'that it names, input is the object that it carries, all of them guarded (agui_internal.json_guard): a backslash is written as an escape.';
