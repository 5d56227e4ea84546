create type agui_internal.claimed_request as (
    event_id text,
    kind     text,
    body     json,
    attempts int
);

comment on type agui_internal.claimed_request is
    'A request of a webhook that a worker has to send now. attempts includes this one.';
