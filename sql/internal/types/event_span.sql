create type agui_internal.event_span as (
    event_count  bigint,
    created_at   timestamptz,
    completed_at timestamptz
);

comment on type agui_internal.event_span is
    'What an event that stands for several says of them: how many they were, when the first and when the last came; null where it does not say.';
