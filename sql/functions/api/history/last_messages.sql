create or replace function agui.last_messages(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    cursor    text default null,
    max_rows  int default 100,
    scope     text default ''
)
returns setof agui.placed_message
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    most_rows constant int := 1000;
    leaf    agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until   constant bigint := agui_internal.seq_at(leaf.thread_key, at_seq, at_time);
    before  constant text[] := regexp_match(cursor, '^([0-9]{1,9})\.([0-9]{1,18})$');
    stored  int4range[];
    fold    agui_internal.fold;
    page_end    int;
    page_start  int;
    ids     text[];
    roles   text[];
    bodies  json[];
    places  agui_internal.message_place[];
begin
    if max_rows is null or max_rows not between 1 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('last messages of thread "%s": max_rows must be between 1 and %s, not %s', thread_id, most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the page before this one, pass the cursor of its first message.';
    end if;
    if cursor is not null and before is null then
        raise exception using
            errcode = '22023',
            message = format('last messages of thread "%s": "%s" is not a cursor', thread_id, left(cursor, 100)),
            hint = 'Use the cursor of a message of agui.last_messages.';
    end if;

    -- Usually a run that has ended has a snapshot of all of it, or none. Then only the messages of the
    -- page are read.
    if leaf.status <> 'running' and (until is null or until >= leaf.last_seq) then
        select snapshot.message_nos into stored
        from agui.snapshot as snapshot
        where snapshot.thread_key = leaf.thread_key and snapshot.run_no = leaf.run_no and snapshot.through_seq >= leaf.last_seq
            and snapshot.rules = agui_internal.rules();
    end if;
    if stored is null then
        fold := agui_internal.fold_at(leaf, until);
        page_end := cardinality(fold.bodies);
    else
        page_end := (select coalesce(sum(upper(part.message_nos) - lower(part.message_nos)), 0) from unnest(stored) as part (message_nos));
    end if;
    page_end := least(page_end, before[1]::int - 1);
    page_start := greatest(1, page_end - max_rows + 1);
    if stored is null then
        ids := fold.message_ids[page_start : page_end];
        roles := fold.roles[page_start : page_end];
        bodies := fold.bodies[page_start : page_end]::json[];
    else
        select array_agg(message.message_id), array_agg(message.role), array_agg(message.body)
        into ids, roles, bodies
        from (
            -- The ranges that reach into the page.
            select listed.*
            from (
                select
                    range.place,
                    lower(range.message_nos) as first_no,
                    sum(upper(range.message_nos) - lower(range.message_nos)) over (order by range.place) as last_place,
                    upper(range.message_nos) - lower(range.message_nos) as size
                from unnest(stored) with ordinality as range (message_nos, place)
            ) as part
            cross join lateral (
                select part.place, version.message_no, version.message_id, version.role, version.body
                from agui.message as version
                where version.thread_key = leaf.thread_key
                    and version.message_no between part.first_no + greatest(page_start - (part.last_place - part.size + 1), 0)
                        and part.first_no + part.size - 1 - greatest(part.last_place - page_end, 0)
                offset 0
            ) as listed
            where part.last_place >= page_start and part.last_place - part.size < page_end
            order by listed.place, listed.message_no
        ) as message;
    end if;

    places := array(
        select place from agui_internal.message_places(agui_internal.run_at(leaf, before[2]::bigint), until, ids, roles) as place
    );
    -- A later run may have brought a message than the one behind it: a result stands behind its call.
    if before is not null and cardinality(places) < cardinality(array_remove(ids, null)) then
        places := array(select place from agui_internal.message_places(leaf, until, ids, roles) as place);
    end if;

    return query
    select
        (page_start + listed.item - 1)::int, listed.message_id, listed.role, listed.body,
        place.run_id, place.first_seq, place.last_seq, place.started_at, place.updated_at, place.calls,
        concat(page_start + listed.item - 1, '.', coalesce(place.first_seq, before[2]::bigint, until, leaf.last_seq, 0))
    from unnest(ids, roles, bodies) with ordinality as listed (message_id, role, body, item)
    left join unnest(places) as place on place.item = listed.item
    order by listed.item;
end
$$;

comment on function agui.last_messages(text, text, bigint, timestamptz, text, int, text) is
    'Returns the last messages of a conversation, in order, with their places in the log: up to '
    'max_rows (default 100, at most 1,000). The conversation is as it was after a run (null: the '
    'head) or, for a point in the past, after event at_seq of its lineage or at at_time, whichever '
    'is earlier. To read the page before this one, pass the cursor of its first message; position 1 '
    'is the beginning. After a run that has a snapshot, it reads the messages of the page and the '
    'log of the runs that brought them, however long the conversation is; otherwise it also folds '
    'what follows the nearest snapshot, as agui.messages does. If a message went and came again, '
    'its place may be one of the later ones. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI011 max_rows is out of range, UI012 '
    'another thread has the same key, UI022 a run is in quarantine, UI023 the fold exceeds a limit, '
    '22023 invalid cursor.';

revoke execute on function agui.last_messages(text, text, bigint, timestamptz, text, int, text) from public;
