create type agui_internal.tool_failure as (
    seq     bigint,
    at      timestamptz,
    call_id text,
    tool    text,
    error   text
);

comment on type agui_internal.tool_failure is
    'A result of a tool call that is an error (agui_internal.tool_error): seq and time of its event, '
    'the call, the name of the function, and what failed.';
