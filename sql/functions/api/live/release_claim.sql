create or replace function agui.release_claim(thread_id text, run_id text, claimant text, scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.key_to_change(thread_id, scope);
begin
    perform agui_internal.lock_thread(key);
    delete from agui_internal.claim as claim
    where claim.thread_key = key
        and claim.run_id = release_claim.run_id
        and claim.claimant = release_claim.claimant;
    return found;
end
$$;

comment on function agui.release_claim(text, text, text, text) is
    'Gives up a claim (agui.claim_run), so that another run can begin. Returns whether there was '
    'one of this claimant; false is no error, so the call can be repeated. '
    'Errors: UI012 another thread has the same key.';

revoke execute on function agui.release_claim(text, text, text, text) from public;
