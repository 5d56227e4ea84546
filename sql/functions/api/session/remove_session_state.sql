create or replace function agui.remove_session_state(
    thread_id text,
    key       text,
    run_id    text default null,
    expected_version bigint default 0,
    overwrite boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    thread uuid := agui_internal.own_thread_key(scope, thread_id);
    run_no int := agui_internal.session_run_no(thread_id, run_id, scope);
begin
    perform from agui.session_key as known where known.thread_key = thread and known.key = remove_session_state.key;
    if not found and (overwrite or coalesce(expected_version, 0) = 0) then
        return 0;  -- do not create a thread for this
    end if;
    thread := agui_internal.ensure_writable_thread(thread_id, scope);
    return agui_internal.write_session_state(
        thread, run_no, key, null,
        case when overwrite is not true then coalesce(expected_version, 0) end,
        false, agui_internal.session_subject(thread_id, run_id)
    );
end
$$;

comment on function agui.remove_session_state(text, text, text, bigint, boolean, text) is
    'Removes a session state document from a run on, or (null) from the thread itself. Earlier '
    'runs keep theirs. Returns the number of the version that records the removal, or 0 if there '
    'was nothing to remove. expected_version and overwrite (remove whatever is there) have the '
    'meaning that they have in agui.save_session_state. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 a limit is '
    'exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 another '
    'version is current, which DETAIL has as {"currentVersion": N}.';

revoke execute on function agui.remove_session_state(text, text, text, bigint, boolean, text) from public;
