create type agui.run_claim as (
    run_id        text,
    parent_run_id text,
    parallel      boolean,
    claimed_at    timestamptz,
    alive_until   timestamptz
);

comment on type agui.run_claim is
    'The claim of a run that will begin (agui.claim_run): the parent that it will have (null: '
    'none), whether it may begin while others are in progress, and when the lease of the claim '
    'ends if agui.keep_alive does not renew it.';
