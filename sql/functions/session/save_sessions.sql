create or replace function agui.save_sessions(sessions json, scope text default '')
returns json
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 64 * 1024 * 1024;
    given     agui.session_given[];
    saved     text[];
    change    record;
    version   bigint;
begin
    if sessions is null or json_typeof(sessions) <> 'array' then
        raise exception using
            errcode = 'AG008',
            message = format('agui.save_sessions needs a JSON array of sessions, not %s', coalesce(json_typeof(sessions), 'null'));
    end if;
    if octet_length(sessions::text) > max_bytes then
        raise exception using
            errcode = 'AG011',
            message = format('the call has %s bytes of session state, more than the %s that it takes', octet_length(sessions::text), max_bytes),
            hint = 'Save the sessions in several calls.';
    end if;
    given := array(
        select agui.inspect_session(item.value, item.place)
        from json_array_elements(sessions) with ordinality as item (value, place)
        order by item.place
    );
    saved := array_fill(''::text, array[cardinality(given)]);

    -- Threads, and then keys, in one order, so that two calls never wait for each other. No thread is made for a session without anything in it.
    perform agui.open_thread(item.thread_id, scope)
    from (
        select distinct session.thread_id, agui.thread_key(scope, session.thread_id) as thread_key
        from unnest(given) as session
        where session.state::text ~ '"'
            or exists (select from agui.session_key as known where known.thread_key = agui.thread_key(scope, session.thread_id))
        order by thread_key
        offset 0
    ) as item;

    for change in
        with session as materialized (
            select
                item.place, item.subject, item.state, item.versions,
                agui.thread_key(scope, item.thread_id) as thread_key,
                agui.session_run_no(item.thread_id, item.run_id, scope) as run_no
            from unnest(given) with ordinality as item (subject, thread_id, run_id, state, versions, place)
        ),
        document as (
            select session.place, member.name as key, member.value as document
            from session
            cross join lateral agui.json_members(session.state) as member
        ),
        known as (
            select session.place, member.name as key, member.value::text::bigint as version
            from session
            cross join lateral agui.json_members(session.versions) as member
            union all
            select session.place, state.key, null
            from session
            cross join lateral agui.nearest_session_states(session.thread_key, session.run_no) as state
            where session.versions is null and state.document is not null
        )
        select
            session.place, session.thread_key, session.run_no, session.subject, key, document.document,
            case when session.versions is not null then coalesce(known.version, 0) end as version
        from document
        full join known using (place, key)
        join session using (place)
        order by session.thread_key, key collate "C", session.place
    loop
        version := agui.write_session_state(change.thread_key, change.run_no, change.key, change.document, change.version, true, change.subject);
        if change.document is not null then
            saved[change.place] := concat_ws(',', nullif(saved[change.place], ''), to_json(change.key) || ':' || version);
        end if;
    end loop;
    return (
        select '[' || coalesce(string_agg('{' || item.versions || '}', ',' order by item.place), '') || ']'
        from unnest(saved) with ordinality as item (versions, place)
    )::json;
end
$$;

comment on function agui.save_sessions(json, text) is
    'Saves several sessions, a JSON array of what agui.save_session takes, all or nothing, and returns an array of the versions that their keys have now.';

revoke execute on function agui.save_sessions(json, text) from public;
