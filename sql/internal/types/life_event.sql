create type agui_internal.life_event as (
    run_no        int,
    place         bigint,
    seq           bigint,
    type          text,
    run_id        text,
    parent_run_id text
);

comment on type agui_internal.life_event is
    'RUN_STARTED, RUN_FINISHED or RUN_ERROR in the log: place counts the events of its run, 1 is the first; run_id and parent_run_id are those '
    'that it names, guarded (agui_internal.json_guard): a backslash is written as an escape.';
