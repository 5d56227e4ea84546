create or replace function agui.load_session(thread_id text, run_id text default null, scope text default '')
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Concatenated as text: the documents are already JSON and keep their spelling.
    return (
        select '{"threadId":' || to_json(thread_id)
            || ',"runId":' || coalesce(to_json(run_id)::text, 'null')
            || ',"state":{' || coalesce(string_agg(to_json(state.key) || ':' || state.document, ',' order by state.key collate "C"), '') || '}'
            || ',"versions":{' || coalesce(string_agg(to_json(state.key) || ':' || state.version, ',' order by state.key collate "C"), '') || '}'
            || '}'
        from agui_internal.nearest_session_states(agui_internal.visible_thread_key(scope, thread_id), agui_internal.session_run_no(thread_id, run_id, scope)) as state
        where state.document is not null
    )::json;
end
$$;

comment on function agui.load_session(text, text, text) is
    'Returns all session state of a run, or (null) of the thread itself, as one JSON document: '
    '{threadId, runId, state: {key: document, …}, versions: {key: version, …}}. The documents are '
    'unchanged, byte for byte. agui.save_session accepts the result. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

revoke execute on function agui.load_session(text, text, text) from public;
