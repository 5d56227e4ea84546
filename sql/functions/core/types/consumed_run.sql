create type agui.consumed_run as (
    position      text,
    scope         text,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    status        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    ended_at      timestamptz,
    thread_uid    uuid,
    is_erased     boolean,
    read_seq      bigint
);

comment on type agui.consumed_run is
    'A row of agui.changes for a consumer. position: what agui.move_consumer takes once the row is '
    'processed. read_seq: the seq of the last event of the thread that the consumer has processed '
    '(agui.mark_read); 0: none.';
