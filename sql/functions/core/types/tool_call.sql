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
    'A tool call. arguments: the text of the arguments received so far (with JSON escapes for what '
    'text cannot contain: \u0000 or half an emoji). arguments_json: the same as JSON (null: it is '
    'not valid JSON). result: the content of the message of the tool (null: none yet). first_seq '
    'and last_seq: its first and last event. status: streaming (arguments are arriving), called '
    '(the arguments are complete, no result yet), completed, or cut_off (its run failed, or ended '
    'before the arguments were complete, and there is no result). ended_at: when the result '
    'arrived or the call was cut off.';
