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
            hint = 'agui.remove_session_state removes what is there. JSON''s null is a document: ''null''.';
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
    'Saves a document of session state, byte for byte, and returns its version. It is that of a run and of '
    'those that go on from it, until one of them saves its own; without a run it is the thread''s own, which '
    'runs see that have none on their lineage. expected_version is the one that agui.load_session_state gave '
    'for this run; 0 or null: there was none. When another one is the current version the call is refused, '
    'also when that is the version of the same call made before, whose answer was lost: load, and see. '
    'overwrite => true saves whatever is there. The thread need not have runs. In a transaction with '
    'agui.append, append first. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 no key or no document, UI011 over a limit, UI012 '
    'another thread has the same key, UI014 the thread was erased, UI018 another version is the current one '
    '(DETAIL: current version N).';

revoke execute on function agui.save_session_state(text, text, json, text, bigint, boolean, text) from public;
