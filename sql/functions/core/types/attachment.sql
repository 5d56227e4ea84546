create type agui.attachment as (
    run_id      text,
    status      text,
    running     text[],
    seq         bigint,
    recorded_at timestamptz,
    events      json
);

comment on type agui.attachment is
    'The result of agui.attach. run_id: the run (null: the thread does not exist yet). status: its '
    'current status. running: the ids of the runs of the thread now in progress. seq and '
    'recorded_at: the position to follow from, which is the last event taken into account (0 and '
    'null: none). events: the history up to that position, a JSON array of events.';
