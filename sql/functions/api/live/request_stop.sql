create or replace function agui.request_stop(
    thread_id text,
    run_id    text default null,
    reason    text default null,
    scope     text default ''
)
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key    constant uuid := agui_internal.key_to_change(thread_id, scope);
    claims int;
    runs   int;
begin
    -- Writers update rows of runs under this lock. Without it, a writer that ends several runs in a
    -- different order could deadlock with this function.
    perform agui_internal.lock_thread(key);
    update agui_internal.claim as claim
    set stop_requested_at = coalesce(claim.stop_requested_at, clock_timestamp()),
        stop_reason = coalesce(claim.stop_reason, nullif(reason, ''))
    where claim.thread_key = key
        and (request_stop.run_id is null or claim.run_id = request_stop.run_id)
        and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp();
    get diagnostics claims = row_count;
    if claims = 0 then
        perform agui_internal.find_run(thread_id, run_id, scope, true);  -- raises the error if there is none
    end if;
    update agui.run as run
    set stop_requested_at = coalesce(run.stop_requested_at, clock_timestamp()),
        stop_reason = coalesce(run.stop_reason, nullif(reason, ''))
    where run.thread_key = key
        and (request_stop.run_id is null or run.run_id = request_stop.run_id)
        and run.status = 'running';
    get diagnostics runs = row_count;
    return claims + runs;
end
$$;

comment on function agui.request_stop(text, text, text, text) is
    'Requests the writer of a run to stop; without a run id, the writers of all runs of the thread '
    'that are in progress or claimed (agui.claim_run), in any process. A writer receives the '
    'request with its next call of agui.keep_alive. Returns how many of these runs now have a stop '
    'request; 0 means that none is in progress. The writer itself ends its run, with RUN_FINISHED '
    'or RUN_ERROR. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.request_stop(text, text, text, text) from public;
