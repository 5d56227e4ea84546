create type agui_internal.fold_call as (
    message_position bigint,
    message_id       text,
    "position"       bigint,
    call_id          text,
    name             text,
    arguments        text
);

comment on type agui_internal.fold_call is
    'A tool call of an agui_internal.fold: position and id of its message, its position in the '
    'message, and id, name and arguments as JSON values, guarded (agui_internal.json_guard).';
