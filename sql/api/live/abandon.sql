create or replace function agui.abandon(
    thread_id text,
    run_id    text,
    reason    text default 'its writer is gone',
    imported  boolean default false,
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
    run := agui_internal.find_run(thread_id, run_id, scope);
    if run.status <> 'running' then
        return run.last_seq;
    end if;
    return agui_internal.close_run(key, run.run_no, coalesce(nullif(reason, ''), 'its writer is gone'), coalesce(imported, false));
end
$$;

comment on function agui.abandon(text, text, text, boolean, text) is
    'Ends a run in progress whose writer will not return, as failed. Appends the ends of its open '
    'messages, tool calls, reasoning, steps and subagents, then a RUN_ERROR with the reason. '
    'Returns the last seq of the run. A run that has ended is left unchanged. imported => true, '
    'for a run that took place in the past (agui.import_events), gives the end the time of its '
    'last event and not the current time. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.abandon(text, text, text, boolean, text) from public;
