create type agui_internal.run_news as (
    thread_key     uuid,
    run_no         int,
    seq            bigint,
    at             timestamptz,
    role           text,
    message_id     text,
    text           text,
    result         agui_internal.tool_result,
    call_id        text,
    tool           text,
    argument_bytes bigint
);

comment on type agui_internal.run_news is
    'A message that the fold has behind a run and not before it, new or changed, with its text and, if it is a '
    'result, the call and what the result is; or (role is null) a tool call in such a message, with the name of the '
    'function and the size of its arguments in bytes. seq and at: the first event of the run that brings the message.';
