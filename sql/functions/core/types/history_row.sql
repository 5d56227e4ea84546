create type agui.history_row as (
    seq          bigint,
    last_seq     bigint,
    run_id       text,
    type         text,
    event_count  bigint,
    created_at   timestamptz,
    completed_at timestamptz,
    payload      json
);

comment on type agui.history_row is
    'One event of the history of a thread, or several joined events. seq and last_seq are those of '
    'the first and the last one; event_count is their number; created_at and completed_at are the '
    'times when the first and the last one were appended (completed_at is null for a single '
    'event); payload is the event. An event that was joined before it was appended states its own '
    'count and times.';
