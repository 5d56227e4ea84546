create type agui.message_row as (
    "position" int,
    message_id text,
    role       text,
    message    json
);

comment on type agui.message_row is
    'A message of a conversation: its place (from 1), its id and role (null where it has none), and the message as AG-UI clients know it.';
