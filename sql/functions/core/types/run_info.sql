create type agui.run_info as (
    depth         int,
    run_id        text,
    parent_run_id text,
    status        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    ended_at      timestamptz,
    run_no        int,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text
);

comment on type agui.run_info is
    'A run as the functions of the tree return it. depth is the number of runs from the root to it '
    '(1 for a root). last_seq and ended_at are null while it is running. run_no numbers the runs '
    'of the thread in the order in which they began. status: running, finished, interrupted (waits '
    'for answers), cancelled, failed or cut_off. The last four columns say why it ended so, or are '
    'null: code and message of RUN_ERROR, the reason of the stop that cancelled it, and why it was '
    'ended on behalf of its writer. Each is cut after 1,000 characters.';
