create type agui.checkpoint_content as (
    thread_id     text,
    namespace     text,
    checkpoint_id text,
    parent_id     text,
    run_id        text,
    cursor        text,
    kind          text,
    channel       text,
    version       text,
    task_id       text,
    task_path     text,
    place         int,
    type          text,
    body          json,
    bytes         bytea
);

comment on type agui.checkpoint_content is
    'A piece of a checkpoint of a graph. kind says which: document (without the values of channels), '
    'metadata, value (of a channel, with its version), or write (what a task wrote to a channel after the '
    'checkpoint; place is the place in its writes). body is the content, byte for byte, if it is JSON '
    '(its type is json), otherwise bytes. parent_id: the checkpoint that it continues from (null: '
    'none). run_id: the run of the log that the graph was working on (null: none was named). cursor: '
    'the place of the checkpoint in a list, for agui.checkpoint_contents.';
