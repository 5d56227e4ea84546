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
    'Saves session state in the form that agui.load_session returns, {threadId, runId, state, '
    'versions}, in one transaction, and returns the current versions of its keys. Unchanged '
    'documents are not written. With versions, each key is checked as by agui.save_session_state: '
    'a key that versions omits must be new, and a key that versions names but state omits is '
    'removed. Without versions, state replaces what is there. A value of any other form raises '
    'UI008. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 a limit is '
    'exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 another '
    'version is current, which DETAIL has as {"currentVersion": N}.';

revoke execute on function agui.save_session(json, text) from public;
