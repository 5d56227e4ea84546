create type agui.webhook_failure as (
    webhook   text,
    event_id  text,
    kind      text,
    scope     text,
    thread_id text,
    run_id    text,
    ended_at  timestamptz,
    attempts  int,
    outcome   text,
    failed_at timestamptz,
    next_attempt_at timestamptz,
    body      json
);

comment on type agui.webhook_failure is
    'A request of a webhook that failed: kind and body are what was to be sent when the run ended at '
    'ended_at, outcome is what came of the last attempt. next_attempt_at null: it failed for good.';
