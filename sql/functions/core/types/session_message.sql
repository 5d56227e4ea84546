create type agui.session_message as (
    seq        bigint,
    type       text,
    message_id text,
    run_id     text,
    created_at timestamptz,
    payload    json
);

comment on type agui.session_message is
    'A message of a legacy session, the format in use before AG-UI: user, assistant and system '
    '{content}, tool_use {id, name, input}, tool_result {tool_use_id, content}, error {message, '
    'code}. seq, run_id and created_at are those of the event that brought it. message_id is the '
    'AG-UI message that it is, or is a part of.';
