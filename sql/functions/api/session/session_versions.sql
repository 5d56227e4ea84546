create or replace function agui.session_versions(thread_id text, key text, run_id text default null, scope text default '')
returns setof agui.session_document
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    thread       constant uuid := agui_internal.visible_thread_key(scope, thread_id);
    state_run_no constant int := agui_internal.session_run_no(thread_id, run_id, scope);
begin
    return query
    select document.*
    from agui.session_state as state
    cross join lateral agui_internal.show_session_state(state) as document
    where state.thread_key = thread
        and state.key = session_versions.key
        and state.run_no = state_run_no
    order by state.version desc;
end
$$;

comment on function agui.session_versions(text, text, text, text) is
    'Returns the stored versions of a session state document at one run, or (null) of the thread '
    'itself, newest first. A null document is a removal. The setting agui.session_versions '
    'determines how many are kept. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

revoke execute on function agui.session_versions(text, text, text, text) from public;
