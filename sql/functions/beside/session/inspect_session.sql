create or replace function agui_internal.inspect_session(session json, place bigint)
returns agui_internal.session_input
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    given   agui_internal.session_input;
    member  record;
    problem text;
begin
    if json_typeof(session) <> 'object' then
        problem := 'it is not a JSON object';
    else
        for member in
            select * from agui_internal.json_members(session)
        loop
            case member.name
                when 'threadId' then given.thread_id := agui_internal.json_text(member.value::text);
                when 'runId' then
                    given.run_id := agui_internal.json_text(member.value::text);
                    if given.run_id is null and json_typeof(member.value) <> 'null' then
                        problem := 'its runId is neither a string nor null';
                    end if;
                when 'state' then given.state := member.value;
                when 'versions' then given.versions := nullif(member.value::text, 'null')::json;
                else problem := format('it has an unknown member "%s"; documents belong under state', left(member.name, 100));
            end case;
        end loop;
    end if;
    given.subject := agui_internal.session_subject(given.thread_id, given.run_id);

    if problem is null and coalesce(given.thread_id, '') = '' then
        problem := 'it has no threadId that is a string';
    elsif problem is null and json_typeof(given.state) is distinct from 'object' then
        problem := 'it has no object named state';
    elsif problem is null and given.versions is not null then
        if json_typeof(given.versions) <> 'object' then
            problem := 'its versions are not an object';
        else
            select format('its versions have no whole number for the key "%s"', left(version.name, 200)) into problem
            from agui_internal.json_members(given.versions) as version
            where version.value::text !~ '^[0-9]{1,18}$' or version.name is null
            limit 1;
        end if;
    end if;
    if problem is null then
        select 'a key of its state contains \u0000 or half a surrogate pair, which text in PostgreSQL cannot contain' into problem
        from agui_internal.json_members(given.state) as document
        where document.name is null
        limit 1;
    end if;
    if problem is not null then
        raise exception using
            errcode = 'UI008',
            message = format('session %s of the call%s cannot be saved: %s', place, ', of ' || nullif(given.subject, agui_internal.session_subject(null, null)), problem),
            hint = 'A session is {"threadId": …, "runId": … or null, "state": {key: document, …}, "versions": {key: version, …}}; versions may be left out.';
    end if;
    return given;
end
$$;

comment on function agui_internal.inspect_session(json, bigint) is
    'Takes apart a session that is to be saved; place is its position in the call. UI008: it is '
    'not a session.';

revoke execute on function agui_internal.inspect_session(json, bigint) from public;
