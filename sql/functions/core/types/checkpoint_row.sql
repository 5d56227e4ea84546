create type agui.checkpoint_row as (
    checkpoint_no bigint,
    namespace     text,
    checkpoint_id text,
    parent_id     text,
    run_id        text,
    saved_at      timestamptz,
    document      json
);

comment on type agui.checkpoint_row is
    'A checkpoint: its number in its thread (see agui.save_checkpoint); its namespace and id; the checkpoint '
    'that it continues from (null: none); the run that the engine was working on (null: none was '
    'named); the time when it was saved; and its document, byte for byte.';
