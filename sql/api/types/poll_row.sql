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
    'Events that a follower has not seen yet, as agui.poll returns them: a JSON array of n events of one run, with the seqs from first_seq on. thread_no '
    'says which of the threads asked for it is, from 1. status is that of the run now, which may have ended further on in the log. recorded_at is when the last of the events was appended; earlier_us, where not null, '
    'says for each how many microseconds before that. Or, with all of that null, an SQLSTATE that says why this thread cannot be followed from there: '
    'UI017 the log was rewound, UI014 the thread was erased. A row with thread_no alone says that the thread has more than fits in the answer.';
