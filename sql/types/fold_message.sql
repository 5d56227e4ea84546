create type agui.fold_message as (
    "position" bigint,
    message_id text,
    role       text,
    body       json
);

comment on type agui.fold_message is 'A message of an agui.fold: its place from 1, id, role, and the message, guarded (agui.json_guard).';
