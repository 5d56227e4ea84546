create or replace function agui_internal.forget_claims()
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from agui_internal.claim as claim
    using agui_internal.own_keys() as own
    where claim.thread_key between own.low and own.high
        and agui_internal.claim_alive_until(claim.seen_at) < clock_timestamp() - interval '1 hour'
$$;

comment on function agui_internal.forget_claims() is
    'Deletes the claims whose lease ended more than an hour ago. Expired claims have no effect; '
    'this removes those of threads in which nothing has begun since.';

revoke execute on function agui_internal.forget_claims() from public;
