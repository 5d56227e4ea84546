create type agui.run_status as (
    run_id            text,
    parent_run_id     text,
    status            text,
    first_seq         bigint,
    last_seq          bigint,
    started_at        timestamptz,
    ended_at          timestamptz,
    alive_at          timestamptz,
    is_stale          boolean,
    stop_requested_at timestamptz,
    stop_reason       text,
    cut_off_reason    text
);

comment on type agui.run_status is
    'A run and its parent (null: a root): running, finished or failed; its last seq so far; its last sign of life, an event or agui.keep_alive; whether that is longer ago '
    'than the lease although it is running; who asked it to stop, when and why; and, when it was ended in its writer''s place, why.';
