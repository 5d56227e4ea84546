-- Session state: the JSON documents that the parts of an agent keep of a conversation, such as
-- memory or a todo list. They are no events and no part of what the UI sees, so they stand beside
-- the log: one per thread, run and key, byte for byte.
--
--   load, key K, at run 7:   7 ─► 5 ─► 2 ─► 1 ─► the thread's own (run number 0)
--                            the document that was saved nearest on the lineage
--   agui.session_key         one row a key: the last version, and when something was saved last
--
-- - A branch and an old run bring their own state. A removal is a version without a document, which
--   hides what earlier runs have.
-- - A search goes from one run at which the key was saved to the next younger one, and climbs the
--   lineage only as far as between the two (nearest_session_states, for all keys at once).
-- - Versions number the documents of a key in its thread, whatever the run. The writer of the next
--   one holds the row of agui.session_key. The unique key of the documents does not suffice: old
--   versions are pruned, so an older snapshot could take the number of a pruned one.
-- - A save compares the version that its writer has read with the one that a load returns now. A
--   repeat whose answer was lost is refused: it looks like another writer who saves the same bytes.
-- - No lock of the log is taken, so no append waits. The row of the thread is held for key share,
--   which agui.erase waits for. In one transaction, append first and save then: the other order may
--   end with 40P01.
-- - Whole sessions of a thread are saved one after the other (session_lock_id): two without a
--   common key could merge into one. agui.save_sessions takes threads, and the keys of each, in one
--   order.
-- - agui_internal.json_members passes members verbatim, also those that PostgreSQL's functions
--   refuse.

create or replace function agui_internal.ensure_writable_thread(thread_id text, scope text)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.own_thread_key(scope, thread_id);
begin
    if thread_id is null or thread_id = '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'thread_id must not be empty, and scope must not be null';
    end if;
    if greatest(octet_length(thread_id), octet_length(scope)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('thread "%s": thread id and scope are limited to 1,024 bytes each', left(thread_id, 200));
    end if;
    if agui_internal.ensure_thread(key, scope, thread_id) then
        perform agui_internal.rebuild_activity(key);
    end if;
    -- Checked last, because from now on the thread cannot be erased.
    perform agui_internal.refuse_erased(key, format('thread "%s"', thread_id));
    return key;
end
$$;

comment on function agui_internal.ensure_writable_thread is
    'Returns the key of a thread in which something is saved beside its log. Creates its row, with '
    'its entry in lists, if it is missing, and protects it from erasure until the transaction '
    'ends. UI008: no id; UI011: ids too long; UI014: the thread was erased.';

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

comment on function agui_internal.inspect_session is
    'Takes apart a session that is to be saved; place is its position in the call. UI008: it is '
    'not a session.';

create or replace function agui_internal.session_subject(thread_id text, run_id text)
returns text
language sql
immutable
parallel safe
return case when run_id is null then format('thread "%s"', thread_id) else format('run "%s" of thread "%s"', run_id, thread_id) end;

comment on function agui_internal.session_subject is
    'What session state belongs to, for error texts.';

create or replace function agui_internal.session_lock_id(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed is "sess" in ASCII. Appends take another lock (agui_internal.thread_lock_id) and are not
-- blocked.
return uuid_hash_extended(thread_key, x'73657373'::bigint);

comment on function agui_internal.session_lock_id is
    'The transaction-level advisory lock for saving the whole session state of a thread, so that '
    'two such calls do not mix their keys.';

create or replace function agui_internal.session_run_no(thread_id text, run_id text, scope text)
returns int
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if thread_id is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'session state needs a thread id and a scope that are not null';
    end if;
    if run_id is null then
        perform agui_internal.checked_thread_key(thread_id, scope);
        return 0;
    end if;
    return (agui_internal.find_run(thread_id, run_id, scope, true)).run_no;
end
$$;

comment on function agui_internal.session_run_no is
    'The run number in agui.session_state for a run; 0, which is the thread itself, if no run is '
    'named. UI001: unknown thread; UI002: unknown run; UI008: no thread or no scope.';

create or replace function agui_internal.show_session_state(state agui.session_state)
returns agui.session_document
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        state.key,
        (select run.run_id from agui.run as run where run.thread_key = state.thread_key and run.run_no = state.run_no),
        state.version,
        state.saved_at,
        state.document
$$;

comment on function agui_internal.show_session_state is
    'Converts session state to the row that users see, with the id of its run.';

create or replace function agui_internal.write_session_state(
    thread_key uuid,
    run_no     int,
    key        text,
    document   json,
    version    bigint,
    if_changed boolean,
    subject    text
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    white_space  constant text := E' \t\n\r';
    last_version bigint;
    nearest      agui.session_state;
    current      bigint;
begin
    if key is null or key = '' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: session state needs a key that is not empty', subject);
    end if;
    if octet_length(key) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('key "%s" of %s: a key is limited to 1,024 bytes', left(key, 200), subject);
    end if;
    subject := format('key "%s" of %s', key, subject);
    perform agui_internal.refuse_large_document(document, subject);

    -- Writers of a key run one after the other, so the next statement finds the version that
    -- precedes this one. Each of them changes the row, so a writer with an older snapshot fails
    -- with 40001.
    loop
        select known.last_version into last_version
        from agui.session_key as known
        where known.thread_key = write_session_state.thread_key and known.key = write_session_state.key
        for no key update;
        exit when found or document is null;
        insert into agui.session_key (thread_key, key, last_version, saved_at)
        values (write_session_state.thread_key, write_session_state.key, 0, clock_timestamp())
        on conflict do nothing;
    end loop;

    select * into nearest from agui_internal.nearest_session_states(thread_key, run_no, array[key]);
    current := case when nearest.document is null then 0 else nearest.version end;

    if version <> current and version is distinct from nearest.version then
        raise exception using
            errcode = 'UI018',
            message = format('%s: the writer has read %s, but %s', subject,
                case when version = 0 then 'that there is none' else format('version %s', version) end,
                case when current = 0 then 'there is none now' else format('the current version is %s', current) end),
            detail = format('{"currentVersion": %s}', current),
            hint = 'Another writer has saved it: load it, apply the change to that version, and save the result. overwrite => true saves without this check.';
    end if;
    if document is null and current = 0 then
        return 0;
    end if;
    if if_changed and btrim(document::text, white_space) = btrim(nearest.document::text, white_space) then
        return current;
    end if;

    update agui.session_key as known
    set last_version = known.last_version + 1, saved_at = greatest(known.saved_at, clock_timestamp())
    where known.thread_key = write_session_state.thread_key and known.key = write_session_state.key;
    insert into agui.session_state (thread_key, run_no, key, version, document)
    values (thread_key, run_no, key, last_version + 1, document);

    -- Delete the versions of this run beyond the number to keep.
    delete from agui.session_state as state
    where state.thread_key = write_session_state.thread_key
        and state.key = write_session_state.key
        and state.run_no = write_session_state.run_no
        and state.version <= (
            select kept.version
            from agui.session_state as kept
            where kept.thread_key = write_session_state.thread_key
                and kept.key = write_session_state.key
                and kept.run_no = write_session_state.run_no
            order by kept.version desc
            offset agui_internal.session_versions_kept()
            limit 1
        );
    return last_version + 1;
end
$$;

comment on function agui_internal.write_session_state is
    'Saves the next version of a session state document, or (null) removes it from a run on, and '
    'returns its number; 0 if there is nothing to remove. version is the one that the writer has '
    'read (0: none; null: no check). if_changed: a document equal to the current one, except for '
    'white space around it, is not written. The caller holds the thread '
    '(agui_internal.ensure_writable_thread). UI008: no key; UI011: over a limit; UI018: another '
    'version is current, which DETAIL names as {"currentVersion": N}.';

create or replace function agui_internal.refuse_large_document(document json, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 64 * 1024 * 1024;
    max_depth constant int := 1000;
    bytes     constant int := agui_internal.json_octets(document);
begin
    if bytes > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the document has %s bytes, more than the limit of %s', subject, bytes, max_bytes);
    end if;
    -- Nesting takes bytes: most documents are too short to be nested too deeply.
    if bytes > 2 * max_depth and agui_internal.json_too_deep(document, max_depth) then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the document is nested more than %s levels deep', subject, max_depth);
    end if;
end
$$;

comment on function agui_internal.refuse_large_document is
    'Raises UI011 for a session state document or a checkpoint of more than 64 MB or nested more '
    'than 1,000 levels deep.';

create or replace function agui_internal.nearest_session_states(thread_key uuid, run_no int, keys text[] default null)
returns setof agui.session_state
language plpgsql
stable
parallel safe
rows 20
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The current place on the lineage. The state of the thread itself, run number 0, comes before
    -- the roots of its tree.
    place   int := run_no;
    missing text[] := keys;
    next_no int;
begin
    if missing is null then
        missing := array(select known.key from agui.session_key as known where known.thread_key = nearest_session_states.thread_key);
    end if;
    loop
        return query
        select nearest.*
        from unnest(missing) as requested (key)
        cross join lateral (
            select state.*
            from agui.session_state as state
            where state.thread_key = nearest_session_states.thread_key and state.key = requested.key and state.run_no = place
            order by state.version desc
            limit 1
        ) as nearest;

        -- The remaining keys, and the youngest earlier run at which one of them was saved.
        select array_agg(requested.key), max(earlier.run_no)
        into missing, next_no
        from unnest(missing) as requested (key)
        cross join lateral (
            select state.run_no
            from agui.session_state as state
            where state.thread_key = nearest_session_states.thread_key and state.key = requested.key and state.run_no <= place
            order by state.run_no desc
            limit 1
        ) as earlier
        where earlier.run_no < place;
        exit when missing is null;

        if next_no = 0 then
            place := 0;
        else
            -- Up the lineage to that run, or past it if it is on another branch: ancestors have
            -- smaller numbers.
            with recursive ancestor as (
                select run.run_no, run.parent_no
                from agui.run as run
                where run.thread_key = nearest_session_states.thread_key and run.run_no = place
                union all
                select parent.run_no, parent.parent_no
                from ancestor
                join agui.run as parent
                    on parent.thread_key = nearest_session_states.thread_key
                        and parent.run_no = ancestor.parent_no
                        and parent.run_no < ancestor.run_no
                where ancestor.run_no > next_no
            )
            select coalesce(max(ancestor.run_no) filter (where ancestor.run_no <= next_no), 0)
            into place
            from ancestor;
        end if;
    end loop;
end
$$;

comment on function agui_internal.nearest_session_states is
    'The session state of a run, for some keys or (null) all: for each key the version saved last '
    'at the nearest run of its lineage, else for the thread (run number 0). Includes removals, '
    'which have a null document. Reads only what it returns and the part of the lineage in '
    'between.';

create or replace function agui_internal.session_versions_kept()
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    setting text := coalesce(nullif(current_setting('agui.session_versions', true), ''), '10');
begin
    if setting !~ '^0*[1-9][0-9]{0,8}$' then
        raise exception using
            errcode = 'invalid_parameter_value',
            message = format('the setting agui.session_versions is "%s", expected a whole number of at least 1', setting),
            hint = 'Use alter database … set agui.session_versions = 10, or alter role …; it takes effect with the next connection.';
    end if;
    return setting::int;
end
$$;

comment on function agui_internal.session_versions_kept is
    'How many versions of a session state document are kept for each run at which it was saved: '
    'the setting agui.session_versions, by default 10.';
