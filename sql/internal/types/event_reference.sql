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
    'Where a message or tool call is named in the log: seq, run, type and time (its timestamp, else when it was appended) of the event; item is '
    'its place in the list of messages that the event brings, 0 where it brings none. message_id is the message that the event makes or adds '
    'to, call_id the tool call that it makes, adds to or (is_result) brings the result of; error is {message, code} of a RUN_ERROR, guarded (agui_internal.json_guard).';
