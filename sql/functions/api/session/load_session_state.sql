create or replace function agui.load_session_state(
    thread_id text,
    key       text,
    run_id    text default null,
    version   bigint default null,
    scope     text default ''
)
returns setof agui.session_document
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    thread uuid := agui_internal.visible_thread_key(scope, thread_id);
    run_no int := agui_internal.session_run_no(thread_id, run_id, scope);
    state  agui.session_state;
begin
    if version is null then
        select * into state from agui_internal.nearest_session_states(thread, run_no, array[key]);
    else
        select * into state
        from agui.session_state as saved
        where saved.thread_key = thread
            and saved.key = load_session_state.key
            and saved.version = load_session_state.version;
    end if;
    if state.document is not null then
        return next agui_internal.show_session_state(state);
    end if;
end
$$;

comment on function agui.load_session_state(text, text, text, bigint, text) is
    'Returns the session state document that a run has under a key: the version saved last at the '
    'run, else at its nearest ancestor, else for the thread itself. Without a run: the document of '
    'the thread itself. With version: that version, at whichever run it was saved, as long as it '
    'is kept. Returns no row if there is none. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

revoke execute on function agui.load_session_state(text, text, text, bigint, text) from public;
