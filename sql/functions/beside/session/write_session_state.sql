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

comment on function agui_internal.write_session_state(uuid, int, text, json, bigint, boolean, text) is
    'Saves the next version of a session state document, or (null) removes it from a run on, and '
    'returns its number; 0 if there is nothing to remove. version is the one that the writer has '
    'read (0: none; null: no check). if_changed: a document equal to the current one, except for '
    'white space around it, is not written. The caller holds the thread '
    '(agui_internal.ensure_writable_thread). UI008: no key; UI011: over a limit; UI018: another '
    'version is current, which DETAIL names as {"currentVersion": N}.';

revoke execute on function agui_internal.write_session_state(uuid, int, text, json, bigint, boolean, text) from public;
