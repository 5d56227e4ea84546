create or replace function agui_internal.find_claim(thread_key uuid, run_id text, parallel boolean, subject text)
returns agui_internal.claim
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    own   agui_internal.claim;
    other agui_internal.claim;
begin
    -- Deleting decides which claims have expired: if agui.keep_alive renews one at the same time,
    -- this statement waits for it and examines the claim once more.
    delete from agui_internal.claim as expired
    where expired.thread_key = find_claim.thread_key
        and agui_internal.claim_alive_until(expired.seen_at) <= clock_timestamp()
        and not agui_internal.is_newly_promoted();

    select * into own
    from agui_internal.claim as held
    where held.thread_key = find_claim.thread_key and held.run_id = find_claim.run_id;
    if own.run_id is not null or parallel then
        return own;
    end if;

    select * into other
    from agui_internal.claim as held
    where held.thread_key = find_claim.thread_key and not held.parallel
    limit 1;
    if found then
        raise exception using
            errcode = 'UI006',
            message = format('%s cannot begin: run "%s" is claimed in this thread and will begin', subject, other.run_id),
            detail = format('The claim was made at %s; without a call of agui.keep_alive its lease ends at %s.',
                other.claimed_at, agui_internal.claim_alive_until(other.seen_at)),
            hint = 'Wait until that run has ended, request it to stop (agui.request_stop), or begin the run with parallel => true.';
    end if;
    return own;
end
$$;

comment on function agui_internal.find_claim(uuid, text, boolean, text) is
    'Returns the claim of a run that is about to begin or to be claimed; null: there is none. '
    'Deletes the claims of the thread whose lease has ended. UI006: another run is claimed, and '
    'neither the claim nor this run is parallel. The caller holds the lock of the thread.';

revoke execute on function agui_internal.find_claim(uuid, text, boolean, text) from public;
