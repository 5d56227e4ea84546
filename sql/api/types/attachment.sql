create type agui.attachment as (
    run_id      text,
    status      text,
    running     text[],
    seq         bigint,
    recorded_at timestamptz,
    events      json
);

comment on type agui.attachment is
    'What agui.attach returns: the run that was attached to (null: the thread is not there yet) '
    'and its status now, the runs of the thread that are in progress now, the position to follow '
    'from (the seq up to which the log has been taken into account, and when that event was '
    'appended; 0 and null: nothing yet), and the history up to there, a JSON array of events.';
