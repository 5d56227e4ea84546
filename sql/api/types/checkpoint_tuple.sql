create type agui.checkpoint_tuple as (
    thread_id      text,
    namespace      text,
    checkpoint_id  text,
    parent_id      text,
    run_id         text,
    saved_at       timestamptz,
    document       json,
    metadata       json,
    channel_values agui.channel_value_row[],
    writes         agui.checkpoint_write_row[],
    cursor         text
);

comment on type agui.checkpoint_tuple is
    'A checkpoint of a graph with all that belongs to it: its document without values, its metadata, '
    'the values of its channels, and what tasks wrote after it, in the order (task_path, task_id, '
    'place). parent_id: the checkpoint that it continues from (null: none). run_id: the run of the log '
    'that the graph was working on (null: none was named). cursor: its place in a list, for '
    'agui.checkpoint_tuples.';
