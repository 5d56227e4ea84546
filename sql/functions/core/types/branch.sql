create type agui.branch as (
    run_id      text,
    runs        int,
    forked_from text,
    status      text,
    last_seq    bigint,
    is_head     boolean
);

comment on type agui.branch is
    'A branch of a thread: its last run, the number of runs from the root to it, the last run that '
    'it shares with another branch (null: none), the status and last seq of its last run, and '
    'whether its last run is the head, from which a new run without a parent continues.';
