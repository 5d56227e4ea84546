create or replace function agui.save_session_state(
    thread_id text,
    key       text,
    document  json,
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
    run_no int;
begin
    if document is null then
        raise exception using
            errcode = 'UI008',
            message = format('key "%s" of thread "%s": there is no document to save', key, thread_id),
            hint = 'To remove the document, remove its key. The JSON value null is a document: ''null''.';
    end if;
    thread := agui_internal.ensure_writable_thread(thread_id, scope);
    run_no := agui_internal.session_run_no(thread_id, run_id, scope);
    return agui_internal.write_session_state(
        thread, run_no, key, document,
        case when overwrite is not true then coalesce(expected_version, 0) end,
        false, agui_internal.session_subject(thread_id, run_id)
    );
end
$$;

comment on function agui.save_session_state(text, text, json, text, bigint, boolean, text) is
    'Saves a session state document byte for byte and returns its version. The document belongs to '
    'a run and to the runs that continue from it, until one of them saves its own. Without a run '
    'it belongs to the thread itself, and runs see it that have none on their lineage. '
    'expected_version is the version that agui.load_session_state returned for this run (0 or '
    'null: there was none). If another version is current, the call is refused, even if that '
    'version is the result of the same call whose answer was lost: load the document and compare. '
    'overwrite => true saves without this check. The thread does not need to have runs. In a '
    'transaction that also calls agui.append, append first. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 no key or no document, UI011 a limit '
    'is exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 '
    'another version is current, which DETAIL has as {"currentVersion": N}.';

revoke execute on function agui.save_session_state(text, text, json, text, bigint, boolean, text) from public;
