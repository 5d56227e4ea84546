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
    has_heartbeat     boolean,
    stop_requested_at timestamptz,
    stop_reason       text,
    cut_off_reason    text,
    error_code        text,
    error_message     text
);

comment on type agui.run_status is
    'The status of a run: its parent (null: it is a root); running, finished, interrupted (it waits '
    'for answers), cancelled, failed (RUN_ERROR) or cut_off (ended on behalf of its writer); its last '
    'seq so far; its last sign of life, an event or a call of agui.keep_alive; is_stale, if it is '
    'running but its last sign of life is longer ago than the lease; has_heartbeat, if its writer '
    'sends heartbeats, as a recorder does; the time and reason of a stop request; and the reason why '
    'it was ended on behalf of its writer, if it was; code and message of the RUN_ERROR that ended it.';
