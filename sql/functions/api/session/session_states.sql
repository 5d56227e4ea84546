create or replace function agui.session_states(thread_id text, run_id text default null, scope text default '')
returns setof agui.session_document
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select document.*
    from agui_internal.nearest_session_states(agui_internal.visible_thread_key(scope, thread_id), agui_internal.session_run_no(thread_id, run_id, scope)) as state
    cross join lateral agui_internal.show_session_state(state) as document
    where state.document is not null
    order by state.key collate "C";
end
$$;

comment on function agui.session_states(text, text, text) is
    'Returns all session state documents of a run, one for each key, in the order of the keys. '
    'Each is what agui.load_session_state returns. Without a run: those of the thread itself. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

revoke execute on function agui.session_states(text, text, text) from public;
