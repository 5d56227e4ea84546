create type agui_internal.call_event as (
    thread_key uuid,
    run_no     int,
    seq        bigint,
    at         timestamptz,
    type       text,
    call_id    text,
    name       text,
    delta      json,
    content    json,
    error      json,
    is_result  boolean,
    has_effect boolean,
    ending     json
);

comment on type agui_internal.call_event is
    'An event of a tool call as the fold reads it: call_id is the call that it names (null: a chunk that continues '
    'another, or an event that is not well-formed), name the function, is_result whether it brings the result. Behind '
    'RUN_ERROR it has no effect. Or, if ending is not null, the end of the run (guarded).';
