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
    'An event of a thread''s history, or several that were joined: seq and last_seq of the first and the last of them, how many they are, '
    'when the first and (null: a single one) the last was appended, and the event. One that was joined before it was appended says number '
    'and times itself.';
