create type agui.chain_head as (
    scope     text,
    thread_id text,
    seq       bigint,
    hash      bytea
);

comment on type agui.chain_head is
    'The last link of a chained thread: the seq of the last event that it is over, and its hash (SHA-256, 32 octets).';
