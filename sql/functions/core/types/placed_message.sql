create type agui.placed_message as (
    "position" int,
    message_id text,
    role       text,
    message    json,
    run_id     text,
    first_seq  bigint,
    last_seq   bigint,
    started_at timestamptz,
    updated_at timestamptz,
    calls      json,
    cursor     text
);

comment on type agui.placed_message is
    'A message of a conversation and its place in the log. position, message_id, role and message: '
    'as in agui.message_row. run_id and first_seq: the run and the event that brought it; an input '
    'beside the events counts at RUN_STARTED. last_seq: the last event of that run that is about it, '
    'such as its end, or one of a tool call in it. started_at and updated_at: the timestamps of these '
    'two events, else when they were appended. All of them null: the message has no id. calls: the '
    'places of the tool calls in it, from that run, as an array of {toolCallId, firstSeq, lastSeq, '
    'startedAt, updatedAt}; null: none. A result is a message with a place of its own. cursor: to '
    'continue before the message.';
