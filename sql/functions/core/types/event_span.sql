create type agui_internal.event_span as (
    event_count  bigint,
    created_at   timestamptz,
    completed_at timestamptz
);

comment on type agui_internal.event_span is
    'What an event that stands for several states about them: their number, and the times of the '
    'first and the last one; null if it does not.';
