create type agui.chain_head as (
    scope     text,
    thread_id text,
    seq       bigint,
    hash      bytea,
    recorded_at timestamptz
);

comment on type agui.chain_head is
    'The last link of a chained thread: the seq of the last event that it covers, its hash '
    '(SHA-256, 32 bytes), and when that event was recorded.';
