create type agui.checkpoint_write_row as (
    task_id   text,
    task_path text,
    place     int,
    channel   text,
    type      text,
    body      json,
    bytes     bytea
);

comment on type agui.checkpoint_write_row is
    'What a task wrote to a channel: body, byte for byte, if it is JSON (its type is json), otherwise '
    'bytes. place is the place in the writes of the task, negative for special channels.';
