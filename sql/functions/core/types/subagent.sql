create type agui.subagent as (
    depth                  int,
    subagent_run_id        text,
    name                   text,
    description            text,
    parent_subagent_run_id text,
    parent_tool_call_id    text,
    parent_message_id      text,
    status                 text,
    run_id                 text,
    last_run_id            text,
    first_seq              bigint,
    last_seq               bigint,
    event_count            bigint,
    started_at             timestamptz,
    ended_at               timestamptz,
    duration               interval,
    result                 json,
    interrupt_ids          text[],
    error_message          text,
    error_code             text,
    usage                  json
);

comment on type agui.subagent is
    'An invocation of a subagent. depth: 1 for a subagent of the main agent, 2 for a subagent of '
    'that, and so on. name, description and the parents: as its first SUBAGENT_STARTED names them '
    '(null: not named). status: running, finished, suspended (waits for answers to interrupt_ids), '
    'failed (with error_message and error_code), or cut_off (its run ended first). run_id and '
    'last_run_id: the runs of its first and last event; they differ if it was suspended and '
    'resumed. event_count: the events that name it. ended_at: null while it is running. duration: '
    'the time between its first and last event in each run, added up; the wait while it is '
    'suspended does not count. result, interrupt_ids, error_message, error_code and usage (an '
    'array, not in AG-UI 1.0, but some agents send it): of its last end; null while it is running.';
