create type agui.activity as (
    message_id    text,
    activity_type text,
    content       json,
    run_id        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    updated_at    timestamptz
);

comment on type agui.activity is
    'An activity of a conversation: its id, type and content, the run that began it, and the seq '
    'and time of its first and last event.';
