create or replace function agui.session_states(thread_id text, run_id text default null, scope text default '')
returns setof agui.session_document
language plpgsql
stable
security definer
parallel safe
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
    'All documents of session state that a run has, one a key, in the order of the keys: for each what '
    'agui.load_session_state gives. Without a run the thread''s own. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no scope, UI012 '
    'another thread has the same key.';

revoke execute on function agui.session_states(text, text, text) from public;
