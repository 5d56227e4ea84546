create type agui_internal.message_place as (
    item       int,
    run_id     text,
    first_seq  bigint,
    last_seq   bigint,
    started_at timestamptz,
    updated_at timestamptz,
    calls      json
);

comment on type agui_internal.message_place is
    'The place of a message in the log, as in agui.placed_message. item: its number in the list of '
    'messages that were looked for.';
