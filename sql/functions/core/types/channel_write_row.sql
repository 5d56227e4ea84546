create type agui.channel_write_row as (
    place         int,
    checkpoint_id text,
    channel       text,
    task_id       text,
    type          text,
    body          json,
    bytes         bytea
);

comment on type agui.channel_write_row is
    'A step in the history of a channel: a write of a task, or (task_id is null) the value that the '
    'writes after it build on. body, byte for byte, if it is JSON (its type is json), otherwise bytes. '
    'place: its place in the history, -1 for the newest step, -2 for the one before it, ….';
