create type agui.event_row as (
    seq         bigint,
    run_id      text,
    type        text,
    recorded_at timestamptz,
    payload     json
);

comment on type agui.event_row is
    'An event of the log: its position in the thread, its run, its type, the time when it was '
    'appended, and the event byte for byte.';
