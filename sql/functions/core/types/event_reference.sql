create type agui_internal.event_reference as (
    seq        bigint,
    item       int,
    run_id     text,
    type       text,
    created_at timestamptz,
    message_id text,
    call_id    text,
    is_result  boolean,
    error      text
);

comment on type agui_internal.event_reference is
    'A reference to a message or tool call in the log: seq, run, type and time (its timestamp, '
    'else when it was appended) of the event. item is the position in the list of messages of the '
    'event, 0 if it has none. message_id is the message that the event creates or adds to; call_id '
    'is the tool call that it creates, adds to or (is_result) brings the result of; error is '
    '{message, code} of a RUN_ERROR, guarded (agui_internal.json_guard).';
