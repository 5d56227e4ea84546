create type agui.message_row as (
    "position" int,
    message_id text,
    role       text,
    message    json
);

comment on type agui.message_row is
    'A message of a conversation: its position (from 1), its id and role (null if it has none), '
    'and the message in the form that AG-UI clients use.';
