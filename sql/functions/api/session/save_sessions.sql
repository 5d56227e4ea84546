create or replace function agui.save_sessions(sessions json, scope text default '')
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 64 * 1024 * 1024;
    given     agui_internal.session_input[];
    saved     text[];
    session   record;
    run_no    int;
    change    record;
    version   bigint;
begin
    perform agui_internal.own_thread_key(scope, '');
    if sessions is null or json_typeof(sessions) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('agui.save_sessions: expected a JSON array of sessions, got %s', coalesce(json_typeof(sessions), 'null'));
    end if;
    if octet_length(sessions::text) > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('agui.save_sessions: the call has %s bytes of session state, more than the limit of %s', octet_length(sessions::text), max_bytes),
            hint = 'Save the sessions in several calls.';
    end if;
    given := array(
        select agui_internal.inspect_session(item.value, item.place)
        from json_array_elements(sessions) with ordinality as item (value, place)
        order by item.place
    );
    saved := array_fill(''::text, array[cardinality(given)]);

    -- Lock the threads in one order, so that two calls cannot deadlock. A session without any
    -- content creates no thread.
    perform
        agui_internal.ensure_writable_thread(item.thread_id, scope),
        agui_internal.wait_for_lock(agui_internal.session_lock_id(item.thread_key), format('the session of thread "%s"', item.thread_id))
    from (
        select distinct requested.thread_id, agui.thread_key(scope, requested.thread_id) as thread_key
        from unnest(given) as requested
        where requested.state::text ~ '"'
            or exists (select from agui.session_key as known where known.thread_key = agui.thread_key(scope, requested.thread_id))
        order by thread_key
        offset 0
    ) as item;

    -- One after the other: the runs that continue from a run inherit what is saved there.
    for session in
        select item.*, agui.thread_key(scope, item.thread_id) as thread_key
        from unnest(given) with ordinality as item (subject, thread_id, run_id, state, versions, place)
        order by thread_key, item.place
    loop
        run_no := agui_internal.session_run_no(session.thread_id, session.run_id, scope);
        for change in
            with document as (
                select member.name as key, member.value as document
                from agui_internal.json_members(session.state) as member
            ),
            known as (
                select member.name as key, member.value::text::bigint as version
                from agui_internal.json_members(session.versions) as member
                union all
                select state.key, null
                from agui_internal.nearest_session_states(session.thread_key, run_no) as state
                where session.versions is null and state.document is not null
            )
            select
                key, document.document,
                case when session.versions is not null then coalesce(known.version, 0) end as version
            from document
            full join known using (key)
            order by key collate "C"
        loop
            version := agui_internal.write_session_state(session.thread_key, run_no, change.key, change.document, change.version, true, session.subject);
            if change.document is not null then
                saved[session.place] := concat_ws(',', nullif(saved[session.place], ''), to_json(change.key) || ':' || version);
            end if;
        end loop;
    end loop;
    return (
        select '[' || coalesce(string_agg('{' || item.versions || '}', ',' order by item.place), '') || ']'
        from unnest(saved) with ordinality as item (versions, place)
    )::json;
end
$$;

comment on function agui.save_sessions(json, text) is
    'Saves the session state of several threads, a JSON array of what agui.save_session accepts, '
    'in one transaction. Returns an array of the current versions of their keys. Sessions of one '
    'thread are saved in the given order. Concurrent calls for one thread run one after the other. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 a limit is '
    'exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 another '
    'version is current, which DETAIL has as {"currentVersion": N}.';

revoke execute on function agui.save_sessions(json, text) from public;
