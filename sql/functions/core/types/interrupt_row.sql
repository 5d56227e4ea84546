create type agui.interrupt_row as (
    interrupt_id text,
    reason       text,
    message      text,
    tool_call_id text,
    expires_at   timestamptz,
    expired      boolean,
    interrupt    json
);

comment on type agui.interrupt_row is
    'An open interrupt: id, reason, message and toolCallId (null if it has none, or if it is not a '
    'string); expires_at, the time in expiresAt (null if there is none, or if it is not a time); '
    'expired, whether that time has passed, so that a client can no longer answer it but only cancel '
    'it; and the interrupt as the agent sent it.';
