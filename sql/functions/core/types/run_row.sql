create type agui.run_row as (
    thread_id      text,
    run_id         text,
    parent_run_id  text,
    status         text,
    title          text,
    agent          text,
    first_seq      bigint,
    last_seq       bigint,
    started_at     timestamptz,
    ended_at       timestamptz,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text,
    cursor         text
);

comment on type agui.run_row is
    'A run in a list over threads. title and agent are those of its thread, as agui.threads shows '
    'them. The columns from error_code to cut_off_reason say why it ended so, as in agui.run_info. '
    'cursor: the position of the run in lists, from which agui.list_runs continues.';
