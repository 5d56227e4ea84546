create or replace function agui.abandon(
    thread_id text,
    run_id    text,
    reason    text default 'its writer is gone',
    imported  boolean default false,
    cancelled boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.key_to_change(thread_id, scope);
    run agui.run;
begin
    perform agui_internal.lock_thread(key);
    run := agui_internal.find_run(thread_id, run_id, scope, true);
    if run.status <> 'running' then
        return run.last_seq;
    end if;
    return agui_internal.close_run(key, run.run_no, coalesce(nullif(reason, ''), 'its writer is gone'), coalesce(imported, false), coalesce(cancelled, false));
end
$$;

comment on function agui.abandon(text, text, text, boolean, boolean, text) is
    'Ends a run in progress whose writer will not return: its status is then cut_off. Appends the '
    'ends of its open messages, tool calls, reasoning, steps and subagents, then a RUN_ERROR with the '
    'reason. Returns the last seq of the run. A run that has ended is left unchanged. imported => '
    'true, for a run that took place in the past (agui.import_events), gives the end the time of its '
    'last event and not the current time. cancelled => true, for a writer that ends its run because '
    'it was requested to stop: the end is RUN_FINISHED with the outcome cancelled. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.abandon(text, text, text, boolean, boolean, text) from public;
