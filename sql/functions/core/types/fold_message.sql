create type agui_internal.fold_message as (
    "position" bigint,
    message_id text,
    role       text,
    body       json
);

comment on type agui_internal.fold_message is
    'A message of an agui_internal.fold: its position from 1, id, role, and the message, guarded '
    '(agui_internal.json_guard).';
