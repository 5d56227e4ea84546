create or replace function agui.save_session(session json, scope text default '')
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return agui.save_sessions(('[' || session || ']')::json, scope) -> 0;
end
$$;

comment on function agui.save_session(json, text) is
    'Saves session state as agui.load_session gives it, {threadId, runId, state, versions}, all or nothing, '
    'and returns the versions that its keys have now. What has not changed is not written again. With '
    'versions each key is compared as by agui.save_session_state, and one that they do not name must be new; '
    'a key that they name and state has no more is removed. Without versions the session becomes what state '
    'says, whatever is there. Errors are those of agui.save_session_state; UI008 also for what is no session. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 over a limit, UI012 '
    'another thread has the same key, UI014 the thread was erased, UI018 stale version.';

revoke execute on function agui.save_session(json, text) from public;
