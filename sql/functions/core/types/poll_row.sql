create type agui.poll_row as (
    thread_no   int,
    run_id      text,
    status      text,
    first_seq   bigint,
    n           int,
    recorded_at timestamptz,
    earlier_us  int[],
    events      json,
    problem     text
);

comment on type agui.poll_row is
    'A row of agui.poll: new events for a follower, as a JSON array of n events of one run, with '
    'consecutive seqs from first_seq on. thread_no is the position of the thread in the arguments, '
    'from 1. status is the current status of the run, which may have ended later in the log. '
    'recorded_at is the time when the last of the events was appended; earlier_us, if not null, '
    'says for each event how many microseconds earlier it was appended. If problem is set, the '
    'other columns are null, and it is the SQLSTATE why the thread cannot be followed from there: '
    'UI012 another thread has the same key, UI017 the log was rewound, UI014 the thread was '
    'erased, UI027 another node of the cluster has it. A row with only thread_no says that the thread has more events than fit.';
