create type agui.tool_call as (
    tool_call_id      text,
    name              text,
    arguments         text,
    arguments_json    json,
    result            json,
    parent_message_id text,
    run_id            text,
    first_seq         bigint,
    last_seq          bigint,
    started_at        timestamptz,
    ended_at          timestamptz,
    status            text
);

comment on type agui.tool_call is
    'A tool call: what was called, with which arguments, and what came of it. arguments is their text as far as it came (with JSON''s escapes where '
    'it holds what text cannot: \u0000 or half an emoji), arguments_json the same as JSON (null: it is none), result the content of the tool''s '
    'message (null: none so far). first_seq and last_seq are its first and last event. status: streaming (arguments are coming), called (they '
    'are complete, there is no result yet), completed, or cut_off (its run failed, or ended before the arguments were complete, and there is no '
    'result). ended_at is when the result came, or when the call was cut off.';
