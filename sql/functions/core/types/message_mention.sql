create type agui_internal.message_mention as (
    run_no     int,
    first_seq  bigint,
    last_seq   bigint,
    type       text,
    is_list    boolean,
    message_id text,
    call_id    text,
    parent_id  text,
    entity_id  text,
    lane       text,
    first_told text,
    last_told  text,
    first_at   timestamptz,
    last_at    timestamptz
);

comment on type agui_internal.message_mention is
    'Events of a run of one type that name the same message or tool call: the first and the last of '
    'them, with their timestamps (as JSON) and the times when they were appended. is_list: the event '
    'lists messages, and this is one of them. lane: of chunks, the subagent, empty for the main '
    'agent; chunks that name nothing continue those before them in their lane.';
