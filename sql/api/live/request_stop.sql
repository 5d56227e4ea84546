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
    key   constant uuid := agui_internal.own_thread_key(scope, thread_id);
    asked agui.run := agui_internal.find_run(thread_id, run_id, scope);
    n     int;
begin
    -- Writers change rows of runs under this lock. Without it, one that ends several runs in an order of its own could wait for this
    -- function while this function waits for it.
    perform agui_internal.lock_thread(key);
    update agui.run as run
    set stop_requested_at = coalesce(run.stop_requested_at, clock_timestamp()),
        stop_reason = coalesce(run.stop_reason, nullif(reason, ''))
    where run.thread_key = key
        and (request_stop.run_id is null or run.run_no = asked.run_no)
        and run.status = 'running';
    get diagnostics n = row_count;
    return n;
end
$$;

comment on function agui.request_stop(text, text, text, text) is
    'Asks the writer of a run to stop, or, without a run id, the writers of all runs in progress of the '
    'thread, in whichever processes they are: they learn of it when they next call agui.keep_alive. Returns '
    'how many runs in progress are asked to stop now; 0: there is none, it has ended. Each run ends itself, '
    'with RUN_FINISHED or RUN_ERROR. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.request_stop(text, text, text, text) from public;
