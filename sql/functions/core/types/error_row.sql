create type agui.error_row as (
    seq            bigint,
    run_id         text,
    kind           text,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text,
    tool_call_id   text,
    tool           text,
    recorded_at    timestamptz
);

comment on type agui.error_row is
    'Something that went wrong in a thread: seq, run and time of the event that says so. kind: how a '
    'run ended (failed, cut_off or cancelled; error_code, error_message, stop_reason and '
    'cut_off_reason as in agui.run_info), or tool: a tool call whose result is an error, as in '
    'agui.tool_fact, which error_message has. tool: the name of its function; null: neither the run '
    'nor its parent made the call. Texts are up to 1,000 characters.';
