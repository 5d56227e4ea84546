create or replace function agui.claims(thread_id text, scope text default '')
returns setof agui.run_claim
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.checked_thread_key(thread_id, scope);
begin
    return query
    select claim.run_id, claim.parent_run_id, claim.parallel, claim.claimed_at, agui_internal.claim_alive_until(claim.seen_at)
    from agui_internal.claim as claim
    where claim.thread_key = key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
    order by claim.claimed_at, claim.run_id;
end
$$;

comment on function agui.claims(text, text) is
    'Returns the runs of a thread that are claimed and have not begun (agui.claim_run), as long as '
    'the lease of their claim lasts. No row: there is none, or no such thread. '
    'Errors: UI012 another thread has the same key.';

revoke execute on function agui.claims(text, text) from public;
