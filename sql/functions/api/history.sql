create or replace function agui.activities(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.activity
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := agui_internal.seq_at(leaf.thread_key, at_seq, at_time);
    fold agui_internal.fold := agui_internal.fold_at(leaf, until);
begin
    return query
    with mention as (
        select *
        from agui_internal.event_references(leaf, until, agui_internal.event_types(
            'show activity', 'patch activity', 'show or patch activity', 'start run', 'list messages'
        ))
    ),
    story as (
        select
            mention.message_id,
            min(mention.seq) as first_seq,
            -- Clients send the whole conversation with every run. A message repeated in a list is
            -- not an update.
            coalesce(max(mention.seq) filter (where mention.item = 0), min(mention.seq)) as last_seq
        from mention
        group by mention.message_id
    ),
    source_event as (
        select distinct mention.seq, mention.run_id, mention.created_at from mention
    )
    select
        activity.message_id,
        agui_internal.json_string_text((activity.body -> 'activityType')::text),
        agui_internal.json_unguard((activity.body -> 'content')::text)::json,
        begun.run_id,
        story.first_seq,
        story.last_seq,
        begun.created_at,
        updated.created_at
    from agui_internal.fold_messages(fold, array['activity']) as activity
    left join story on story.message_id = activity.message_id
    left join source_event as begun on begun.seq = story.first_seq
    left join source_event as updated on updated.seq = story.last_seq
    order by activity.position;
end
$function$;

comment on function agui.activities is
    'Returns the activities of a conversation, in the order of the conversation, as they were '
    'after a run (null: the head) or, for a point in the past, after event at_seq of its lineage '
    'or at at_time, whichever is earlier. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

-- Streamed events of a run are joined in groups: the pieces of a message, or the arguments of a
-- tool call. Tool calls, runs and subagents often stream in parallel, so several groups are open at
-- once. An event may be joined to a group across other events only if that cannot change their
-- combined meaning. So an event closes these groups:
-- - Those of its run, if it is neither a piece nor the start or end of a message or a tool call.
-- - Otherwise those of its subagent (or of the main agent). Exception: an event of a tool call does
--   not close the arguments of other tool calls, and a chunk does not close groups of chunks.
-- - In any case those of the message or tool call that it names as its own or as its parent.
-- A page ends with the event before the one that would need a row too many, or more than page_bytes. It
-- contains all events up to that point, whatever groups are open.
create or replace function agui.history(
    thread_id  text,
    run_id     text default null,
    after_seq  bigint default 0,
    types      text[] default null,
    since      timestamptz default null,
    until      timestamptz default null,
    max_rows   int default 100,
    compressed boolean default true,
    max_bytes  int default null,
    max_idle   interval default null,
    lineage    boolean default true,
    scope      text default '',
    page_bytes int default null  -- last, for programs that give the others by place
)
returns setof agui.history_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    most_rows constant int := 1000;
    run       agui.run := agui_internal.find_run(thread_id, run_id, scope);
    behind    bigint := coalesce(after_seq, 0);
    stretch   record;  -- of the log: a run to read, or all of it
    -- The planner does not know this limit, so it expects to read only a part of the batches. It
    -- then reads them in the order of the index as the page needs them, and does not sort the whole
    -- thread first.
    unlimited constant bigint := null;
    event     record;
    span      agui_internal.event_span;

    room      bigint := page_bytes;  -- null: no bound
    is_cut    boolean := false;  -- because of it

    -- The page: its rows and, for each of its events, the row that it belongs to.
    row_count    int := 0;
    row_runs     int[] := '{}';
    row_types    text[] := '{}';
    row_payloads json[] := '{}';
    -- the event count that an event states which was joined before it was appended
    row_counts   bigint[] := '{}';
    row_begun    timestamptz[] := '{}';
    row_ended    timestamptz[] := '{}';
    members      int[] := '{}';
    seqs         bigint[] := '{}';
    times        timestamptz[] := '{}';
    pieces       text[] := '{}';

    -- What the events of a group have in common.
    ids          text[] := '{}';
    owners       text[] := '{}';
    roles        text[] := '{}';
    names        text[] := '{}';
    parents      text[] := '{}';
    metadatas    text[] := '{}';
    by_content   boolean[] := '{}';
    sizes        int[] := '{}';
    latest       timestamptz[] := '{}';

    open_rows    int[] := '{}';  -- the groups that can still grow
    still_open   int[];
    is_piece     boolean;
    -- the inside of the JSON string of the current event; null: the event is not joined
    piece        text;
    is_step      boolean;
    is_chunk     boolean;
    joined       int;            -- the row that the current event belongs to
    item         int;

    -- The previous event, if it was a piece and the next piece of the same kind may follow.
    last_run     int;
    last_type    text;
    last_id      text;
    last_owner   text;
    last_role    text;
begin
    if max_rows is null or max_rows not between 1 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('history of thread "%s": max_rows must be between 1 and %s, not %s', thread_id, most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, continue behind the greatest last_seq of this one.';
    end if;
    if max_bytes < 1 or max_idle < interval '0' then
        raise exception using
            errcode = 'UI011',
            message = format('history of thread "%s": max_bytes must be at least 1 and max_idle must not be negative', thread_id);
    end if;
    if page_bytes < 1 then
        raise exception using
            errcode = 'UI011',
            message = format('history of thread "%s": page_bytes must be at least 1', thread_id);
    end if;
    if since is not null then
        behind := greatest(behind, agui_internal.last_seq_by(run.thread_key, since, or_at => false));
    end if;
    if lineage is false then
        run.parent_no := null;
    end if;

    <<log>>
    for stretch in
        select null::int as run_no, 1 as from_seq, 9223372036854775807 as through_seq
        where history.run_id is null and lineage is not false
        union all
        -- Each run by itself: between those of a lineage there may be many others.
        select ancestor.run_no, ancestor.first_seq, coalesce(ancestor.last_seq, 9223372036854775807)
        from agui_internal.ancestors(run, behind) as ancestor
        where history.run_id is not null or lineage is false
        order by run_no
    loop
        for event in
            select
                batch.first_seq + element.position - 1 as seq,
                batch.run_no,
                agui_internal.event_time(batch.recorded_at, element.earlier_us) as recorded_at,
                element.type,
                case when element.type ^@ 'TOOL_CALL_' then element.tool_call_id else element.message_id end::text as id,
                coalesce(element.delta, element.content)::text as piece,
                element.delta is null as by_content,
                element.owner::text as owner,
                element.role::text as role,
                coalesce(element.tool_call_name, element.name)::text as name,
                element.parent_message_id::text as parent,
                element.metadata::text as metadata,
                strpos(element.payload::text, '"event_count"') > 0 or strpos(element.payload::text, '"eventCount"') > 0 as says_count,
                element.payload
            from (
                select stored.*, agui_internal.json_guarded(stored.events) as guarded
                from agui_internal.batches_behind(run.thread_key, greatest(behind, stretch.from_seq - 1)) as stored
                where stored.first_seq <= stretch.through_seq
                    and (stretch.run_no is null or stored.run_no = stretch.run_no)
                order by stored.first_seq
                -- and the text of a batch is guarded once, not once for each function that reads it
                limit unlimited
            ) as batch
            cross join lateral rows from (
                json_to_recordset(batch.guarded) as (
                    type text,
                    "messageId" json,
                    "toolCallId" json,
                    delta json,
                    content json,
                    "subagentRunId" json,
                    role json,
                    name json,
                    "toolCallName" json,
                    "parentMessageId" json,
                    metadata json
                ),
                json_array_elements(batch.events),
                unnest(batch.earlier_us)
            ) with ordinality as element (
                type, message_id, tool_call_id, delta, content, owner, role, name, tool_call_name, parent_message_id, metadata,
                payload, earlier_us, position
            )
            where batch.first_seq + element.position - 1 > behind
        loop
            exit log when event.recorded_at >= until;

            -- Fast path for most of a stream: the event is another piece of the same thing as the
            -- previous event.

            if event.type = last_type
                and event.run_no = last_run
                and event.id = last_id
                and event.owner is not distinct from last_owner
                and event.role is not distinct from last_role
                and event.metadata is null
                and not event.by_content
                and event.piece ^@ '"'
                and not event.says_count
                and (octet_length(event.piece) > room) is not true
            then
                room := room - octet_length(event.piece);
                members := array_append(members, joined);
                seqs := array_append(seqs, event.seq);
                times := array_append(times, event.recorded_at);
                pieces := array_append(pieces, substr(event.piece, 2, length(event.piece) - 2));
                continue;
            end if;
            last_type := null;

            if strpos(concat(event.id, event.owner, event.parent), '\') > 0 then  -- compare ids in one spelling
                event.id := agui_internal.json_string_token(event.id);
                event.owner := agui_internal.json_string_token(event.owner);
                event.parent := agui_internal.json_string_token(event.parent);
            end if;
            is_piece := compressed
                and event.type = any (agui_internal.event_types(
                    'continue text', 'continue reasoning', 'continue thinking', 'continue tool', 'chunk text', 'chunk reasoning', 'chunk tool'
                ));
            is_chunk := event.type = any (agui_internal.event_types('chunk text', 'chunk reasoning', 'chunk tool'));
            span := case when event.says_count then agui_internal.read_event_span(event.payload) end;
            piece := case when is_piece and event.piece ^@ '"' and span.event_count is null then substr(event.piece, 2, length(event.piece) - 2) end;

            -- Find the group of the event. A chunk without id, role or name continues the chunk before
            -- it.

            joined := null;
            if piece is not null then
                foreach item in array open_rows loop
                    if row_runs[item] = event.run_no
                        and row_types[item] = event.type
                        and owners[item] is not distinct from event.owner
                        and metadatas[item] is not distinct from event.metadata
                        and by_content[item] = event.by_content
                        and (
                            ids[item] is not distinct from event.id and roles[item] is not distinct from event.role
                            or is_chunk
                            and coalesce(event.id, ids[item]) is not distinct from ids[item]
                            and coalesce(event.role, roles[item]) is not distinct from roles[item]
                            and coalesce(event.name, names[item]) is not distinct from names[item]
                            and coalesce(event.parent, parents[item]) is not distinct from parents[item]
                        )
                    then
                        joined := item;
                        exit;
                    end if;
                end loop;
                if sizes[joined] + octet_length(piece) > max_bytes or event.recorded_at - latest[joined] > max_idle then
                    open_rows := array_remove(open_rows, joined);
                    joined := null;
                end if;
            end if;

            if joined is not null and octet_length(piece) > room then
                is_cut := true;
                exit log;
            end if;
            if joined is null then
                -- Close the groups that this event ends.

                if open_rows <> '{}' then
                    is_step := is_piece or event.type = any (agui_internal.event_types(
                        'start text', 'end text', 'start reasoning', 'end reasoning', 'start thinking', 'end thinking', 'start tool', 'end tool'
                    ));
                    still_open := '{}';
                    foreach item in array open_rows loop
                        if row_runs[item] <> event.run_no
                            or is_step
                            and (
                                owners[item] is distinct from event.owner
                                -- A chunk without an id may continue any message, and one without an
                                -- owner the stream of any subagent.
                                and not (
                                    row_types[item] = any (agui_internal.event_types('chunk text', 'chunk reasoning', 'chunk tool'))
                                    and (is_chunk or ids[item] is null)
                                    or is_chunk and event.id is null
                                )
                                or row_types[item] = any (agui_internal.event_types('continue tool'))
                                and event.type = any (agui_internal.event_types('start tool', 'continue tool', 'end tool'))
                            )
                            and (ids[item] = event.id) is not true
                            and (ids[item] = event.parent) is not true
                        then
                            still_open := array_append(still_open, item);
                        end if;
                    end loop;
                    open_rows := still_open;
                end if;

                exit log when row_count = max_rows and open_rows = '{}';
                continue when types is not null and (event.type = any (types)) is not true;
                exit log when row_count = max_rows;
                if room is not null then
                    is_cut := row_count > 0 and octet_length(event.payload::text) > room;
                    exit log when is_cut;
                    room := room - octet_length(event.payload::text);
                end if;

                -- The event gets its own row, which later events may join.

                row_count := row_count + 1;
                joined := row_count;
                row_runs[joined] := event.run_no;
                row_types[joined] := event.type;
                row_payloads[joined] := event.payload;
                row_counts[joined] := span.event_count;
                row_begun[joined] := span.created_at;
                row_ended[joined] := span.completed_at;
                by_content[joined] := event.by_content;
                if piece is not null then
                    open_rows := array_append(open_rows, joined);
                    ids[joined] := event.id;
                    owners[joined] := event.owner;
                    roles[joined] := event.role;
                    names[joined] := event.name;
                    parents[joined] := event.parent;
                    metadatas[joined] := event.metadata;
                    sizes[joined] := 0;
                end if;
            else
                room := room - octet_length(piece);
            end if;

            members := array_append(members, joined);
            seqs := array_append(seqs, event.seq);
            times := array_append(times, event.recorded_at);
            pieces := array_append(pieces, piece);
            if coalesce(max_bytes::text, max_idle::text) is not null then
                sizes[joined] := sizes[joined] + octet_length(piece);
                latest[joined] := event.recorded_at;
            elsif piece is not null and event.metadata is null and not event.by_content and not is_chunk then
                last_run := event.run_no;
                last_type := event.type;
                last_id := event.id;
                last_owner := event.owner;
                last_role := event.role;
            end if;
        end loop;
    end loop log;

    return query
    select
        page.seq,
        page.last_seq,
        run_of.run_id,
        row_of.type,
        coalesce(row_of.event_count, page.n),
        coalesce(row_of.begun, page.created_at),
        case when row_of.event_count is not null then row_of.ended when page.n > 1 then page.completed_at end,
        case when page.n > 1 then agui_internal.with_joined_text(row_of.payload, row_of.by_content, page.piece) else row_of.payload end
    from (
        select
            member_of.row_no as position,
            count(*) as n,
            min(member_of.seq) as seq,
            max(member_of.seq) as last_seq,
            min(member_of.time) as created_at,
            max(member_of.time) as completed_at,
            string_agg(member_of.piece, '' order by member_of.seq) as piece
        from unnest(members, seqs, times, pieces) as member_of (row_no, seq, time, piece)
        group by member_of.row_no
    ) as page
    join unnest(row_runs, row_types, row_payloads, row_counts, row_begun, row_ended, by_content) with ordinality
            as row_of (run_no, type, payload, event_count, begun, ended, by_content, position)
        using (position)
    -- The offset makes this one look-up for each. A join may read all runs of the thread.
    cross join lateral (
        select named.run_id from agui.run as named where named.thread_key = run.thread_key and named.run_no = row_of.run_no offset 0
    ) as run_of
    order by page.seq;
    if is_cut then
        return next null::agui.history_row;
    end if;
end
$function$;

comment on function agui.history is
    'Returns a page of the log of a thread: all branches in the order of seq, or the lineage of '
    'run_id, or (lineage => false) only that run, or else the head. The page holds up to max_rows '
    '(default 100, at most 1,000) events after after_seq, of the given types (null: all), appended '
    'at or after since and before until. compressed joins consecutive pieces of a message, or of '
    'the arguments of a tool call, into one event of up to max_bytes of text; a piece that comes '
    'more than max_idle after the previous one begins a new event. Tool calls, runs and subagents '
    'that stream in parallel are joined separately. Joined events keep their seq, so seq has gaps. '
    'With compressed => false every event is returned as it was appended. To read the next page, '
    'pass the greatest last_seq of this page as after_seq: no event is missed or returned twice, '
    'even if events are appended in the meantime. page_bytes bounds the bytes of the events of a page '
    '(null: no bound), which has one event at least. If it ends the page, a last row of nulls says so. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI011 max_rows is out of range, UI012 '
    'another thread has the same key.';

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

comment on function agui.last_messages is
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

create or replace function agui.malformed_events(thread_id text, run_id text default null, max_rows int default 100, scope text default '')
returns table (seq bigint, type text, problem text)
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select malformed.seq, malformed.type, malformed.problem
    from agui_internal.malformed_events_of(agui_internal.find_run(thread_id, run_id, scope)) as malformed
    limit max_rows;
end
$$;

comment on function agui.malformed_events is
    'Returns the first max_rows events of a run (null: the head) that no client shows, because they lack a field that '
    'their type needs, such as the messageId of a TEXT_MESSAGE_START, or have it under a name of Python (message_id): seq, '
    'type and what is wrong. Reads all events of the run. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.pending_tool_calls(thread_id text, run_id text default null, scope text default '')
returns text[]
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run   agui.run := agui_internal.find_run(thread_id, run_id, scope);
    named text[];
begin
    if run.status <> 'finished' then
        return '{}';
    end if;

    select array_agg(agui_internal.json_string_text(call.id::text) order by call.position)
    into named
    from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
    cross join lateral (
        select (agui_internal.json_guarded(batch.events) -> (run.end_seq - batch.first_seq)::int) -> 'outcome' as outcome
        offset 0
    ) as ending
    cross join lateral json_array_elements(case
        when ending.outcome ->> 'type' = 'success' and json_typeof(ending.outcome -> 'pendingToolCallIds') = 'array'
            then ending.outcome -> 'pendingToolCallIds'
        else '[]'
    end) with ordinality as call (id, position)
    where json_typeof(call.id) = 'string';
    if named is not null then
        return named;
    end if;

    return agui_internal.unanswered_calls(run);
end
$$;

comment on function agui.pending_tool_calls is
    'Returns the ids of the tool calls that a run (null: the head) has left for the application to '
    'answer, as the official client computes them: those that the outcome of its RUN_FINISHED '
    'names (pendingToolCallIds), or else those that it began and gave no result. Only a run with '
    'the status finished has any. Reads the events of the run if the outcome names none. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.run_tool_calls(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.tool_call
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until bigint;
begin
    if run.run_no is null then
        return;  -- an unknown thread, read as empty
    end if;
    until := agui_internal.seq_at(run.thread_key, at_seq, at_time);
    run.parent_no := null;  -- the run alone
    perform agui_internal.refuse_quarantined(run, until);
    return query
    select *
    from agui_internal.calls_of_fold(
        agui_internal.fold_events(
            agui_internal.fold_empty(), run.thread_key, array[run.run_no], array[run.first_seq - 1],
            array[least(coalesce(run.last_seq, until, 9223372036854775807), coalesce(until, 9223372036854775807))]
        ),
        run, until, 0, streamed => true
    );
end
$$;

comment on function agui.run_tool_calls is
    'Returns the tool calls that events of a run (null: the head) made, in the order in which they '
    'began, as they were after the run or, for a point in the past, after event at_seq or at '
    'at_time, whichever is earlier. Reads the log of this run and no other, so the result of a call '
    'that came with a later run is not there, and calls that only a list of messages has are left '
    'out: agui.tool_calls has both. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.subagents(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    lineage   boolean default true,
    scope     text default ''
)
returns setof agui.subagent
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
-- The planner expects few subagents, and would compare each with each where there are many.
set enable_nestloop = off
set jit = off
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := coalesce(agui_internal.seq_at(leaf.thread_key, at_seq, at_time), 9223372036854775807);
begin
    return query
    with ancestor as materialized (
        select * from agui_internal.ancestors(leaf, case when lineage is false then leaf.first_seq else 0 end)
    ),
    event as materialized (
        select
            batch.first_seq + element.position - 1 as seq,
            batch.run_no,
            element.type,
            coalesce(agui_internal.json_timestamp(element.told), agui_internal.event_time(batch.recorded_at, element.earlier_us)) as created_at,
            agui_internal.json_string_text(element.subagent::text) as subagent_run_id,
            element.type = any (agui_internal.event_types('end subagent')) as is_end,
            case when element.type = any (agui_internal.event_types('start subagent', 'end subagent')) then element.payload end as payload
        from (
            select stored.*, agui_internal.json_guarded(stored.events) as guarded
            from ancestor
            cross join lateral (
                select *
                from agui.batch as of_run
                where of_run.thread_key = leaf.thread_key
                    and of_run.run_no = ancestor.run_no
                    and of_run.first_seq between ancestor.first_seq and least(coalesce(ancestor.last_seq, until), until)
                    -- Skip batches that name no subagent. A name written with escapes has \u00 in it.
                    and (strpos(of_run.events::text, 'subagentRunId') > 0 or strpos(of_run.events::text, '\u00') > 0)
                offset 0  -- one range of the index for each run
            ) as stored
            offset 0  -- so that a batch is guarded once, not once for each function that reads it
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.guarded) as (type text, "subagentRunId" json, "timestamp" json),
            json_array_elements(batch.guarded),
            unnest(batch.earlier_us)
        ) with ordinality as element (type, subagent, told, payload, earlier_us, position)
        where json_typeof(element.subagent) = 'string'
            and batch.first_seq + element.position - 1 <= until
    ),
    segment as (
        select
            event.subagent_run_id,
            event.run_no,
            count(*) as event_count,
            min(event.seq) as first_seq,
            max(event.seq) as last_seq,
            max(event.seq) filter (where event.type = any (agui_internal.event_types('start subagent'))) as start_seq,
            max(event.seq) filter (where event.is_end) as end_seq,
            (array_agg(event.payload order by event.seq) filter (where event.type = any (agui_internal.event_types('start subagent'))))[1] as start,
            (array_agg(event.payload order by event.seq desc) filter (where event.is_end))[1] as ending,
            (array_agg(event.created_at order by event.seq desc) filter (where event.is_end))[1] as ended_at,
            (array_agg(event.created_at order by event.seq))[1] as started_at,
            max(event.created_at) - min(event.created_at) as duration
        from event
        group by event.subagent_run_id, event.run_no
    ),
    -- Runs of a lineage follow one another, and so do the segments.
    subagent as materialized (
        select
            row_number() over (order by min(segment.first_seq))::int as node,
            segment.subagent_run_id,
            min(segment.run_no) as first_run_no,
            max(segment.run_no) as last_run_no,
            max(segment.run_no) filter (where segment.end_seq is not null) as end_run_no,
            sum(segment.event_count)::bigint as event_count,
            min(segment.first_seq) as first_seq,
            max(segment.last_seq) as last_seq,
            max(segment.start_seq) as start_seq,
            max(segment.end_seq) as end_seq,
            (array_agg(segment.start order by segment.run_no) filter (where segment.start is not null))[1] as start,
            (array_agg(segment.ending order by segment.run_no desc) filter (where segment.ending is not null))[1] as ending,
            (array_agg(segment.ended_at order by segment.run_no desc) filter (where segment.end_seq is not null))[1] as ended_at,
            (array_agg(segment.started_at order by segment.run_no))[1] as started_at,
            sum(segment.duration) as duration
        from segment
        group by segment.subagent_run_id
    ),
    start as materialized (
        select
            subagent.node,
            agui_internal.json_string_text(member.name::text) as name,
            agui_internal.json_string_text(member.description::text) as description,
            agui_internal.json_string_text(member."parentSubagentRunId"::text) as parent_subagent_run_id,
            agui_internal.json_string_text(member."parentToolCallId"::text) as parent_tool_call_id,
            agui_internal.json_string_text(member."parentMessageId"::text) as parent_message_id
        from subagent
        cross join lateral json_to_record(subagent.start) as member (
            name json, description json, "parentSubagentRunId" json, "parentToolCallId" json, "parentMessageId" json
        )
    ),
    tree as (
        select *
        from agui_internal.preorder((
            -- A parent must have begun before, so that parents that name each other make no circle.
            select array_agg(coalesce(parent.node, 0) order by subagent.node)
            from subagent
            join start on start.node = subagent.node
            left join subagent as parent
                on parent.subagent_run_id = start.parent_subagent_run_id and parent.node < subagent.node
        ))
    )
    select
        tree.depth,
        subagent.subagent_run_id,
        start.name,
        start.description,
        start.parent_subagent_run_id,
        start.parent_tool_call_id,
        start.parent_message_id,
        progress.status,
        first_run.run_id,
        last_run.run_id,
        subagent.first_seq,
        subagent.last_seq,
        subagent.event_count,
        subagent.started_at,
        case progress.status when 'running' then null when 'cut_off' then last_run.ended_at else subagent.ended_at end,
        subagent.duration,
        case when progress.status = 'finished' then agui_internal.json_unguard(nullif(closing.result::text, 'null'))::json end,
        case when progress.status = 'suspended' then closing.interrupt_ids end,
        case when progress.status = 'failed' then agui_internal.json_string_text(closing.message::text) end,
        case when progress.status = 'failed' then agui_internal.json_string_text(closing.code::text) end,
        case
            when progress.status not in ('running', 'cut_off') and json_typeof(closing.usage) = 'array' then agui_internal.json_unguard(closing.usage::text)::json
        end
    from subagent
    join tree on tree.node = subagent.node
    join start on start.node = subagent.node
    join ancestor as first_run on first_run.run_no = subagent.first_run_no
    join ancestor as last_run on last_run.run_no = subagent.last_run_no
    left join lateral (
        select
            member.result,
            member.message,
            member.code,
            member.usage,
            member.type = 'SUBAGENT_ERROR' as is_failure,
            outcome.value ->> 'type' = 'suspended' as is_suspension,
            (
                select array_agg(agui_internal.json_string_text(item.value::text) order by item.position)
                from json_array_elements(case when json_typeof(outcome.value -> 'interruptIds') = 'array' then outcome.value -> 'interruptIds' end)
                    with ordinality as item (value, position)
                where json_typeof(item.value) = 'string'
            ) as interrupt_ids
        from json_to_record(subagent.ending) as member (type text, result json, message json, code json, usage json, outcome json)
        cross join lateral (
            select case when json_typeof(member.outcome) = 'object' and member.type = 'SUBAGENT_FINISHED' then member.outcome end as value
        ) as outcome
    ) as closing on true
    cross join lateral (
        select
            subagent.end_seq is null
            or subagent.start_seq > subagent.end_seq
            -- A later run continues a subagent that was suspended, with SUBAGENT_STARTED or without.
            or closing.is_suspension and subagent.last_run_no > subagent.end_run_no as is_open
    ) as stage
    cross join lateral (
        select case
            when stage.is_open and last_run.last_seq <= until then 'cut_off'
            when stage.is_open then 'running'
            when closing.is_failure then 'failed'
            when closing.is_suspension then 'suspended'
            else 'finished'
        end as status
    ) as progress
    order by tree.place;
end
$function$;

comment on function agui.subagents is
    'Returns the subagents of the lineage of a run (null: the head) as they were after the run or, '
    'for a point in the past, after event at_seq or at at_time, whichever is earlier. lineage => '
    'false: only those of the run itself. One row for each subagentRunId, in the order of a tree: '
    'each subagent before those that it began, which have the next depth. A subagent whose parent '
    'is unknown, or began later, has depth 1. Parses only those batches of the log that name '
    'subagents. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.tool_calls(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    scope     text default ''
)
returns setof agui.tool_call
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := agui_internal.seq_at(leaf.thread_key, at_seq, at_time);
begin
    return query
    select * from agui_internal.calls_of_fold(agui_internal.fold_at(leaf, until), leaf, until, after_seq);
end
$function$;

comment on function agui.tool_calls is
    'Returns the tool calls of a conversation as they were after a run (null: the head) or, for a '
    'point in the past, after event at_seq of its lineage or at at_time, whichever is earlier. One '
    'row for each call, in the order in which they began; after_seq restricts the rows to calls '
    'that began after that event. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.usage(
    thread_id    text,
    run_id       text default null,
    lineage      boolean default true,
    whole_thread boolean default false,
    scope        text default ''
)
returns setof agui.model_usage
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    if whole_thread and (run_id is not null or lineage is false) then
        raise exception using
            errcode = '22023',
            message = format('usage of thread "%s": whole_thread reads all runs, so it takes neither run_id nor lineage => false', thread_id);
    end if;
    return query
    with counted as materialized (
        select source.run
        from (
            select ancestor as run
            from agui_internal.ancestors(leaf, case when lineage is false then leaf.first_seq else 0 end) as ancestor
            where whole_thread is not true
            union all
            select every_run
            from agui.run as every_run
            where whole_thread and every_run.thread_key = leaf.thread_key
        ) as source
    ),
    reported as (
        select (counted.run).run_no, entry.*
        from counted
        cross join lateral agui_internal.end_of_run(counted.run) as ending
        cross join lateral agui_internal.usage_of_run(counted.run, ending.event) as entry
    ),
    by_model as (
        select
            reported.provider,
            reported.model,
            sum(reported.input_tokens) as input,
            sum(reported.output_tokens) as output,
            sum(reported.total_tokens) as total,
            sum(reported.reasoning_tokens) as reasoning,
            sum(reported.cached_input_tokens) as cached,
            sum(reported.cache_write_input_tokens) as cache_write,
            count(distinct reported.run_no) as runs
        from reported
        group by reported.provider, reported.model
    ),
    all_of as (
        select
            (select count(*) from counted) as runs,
            (select count(distinct reported.run_no) from reported) as runs_with_usage
    )
    select
        by_model.provider,
        by_model.model,
        agui_internal.saturated(by_model.input),
        agui_internal.saturated(by_model.output),
        agui_internal.saturated(by_model.total),
        agui_internal.saturated(by_model.reasoning),
        agui_internal.saturated(by_model.cached),
        agui_internal.saturated(by_model.cache_write),
        coalesce(by_model.runs, 0),
        all_of.runs,
        all_of.runs - all_of.runs_with_usage
    from all_of
    left join by_model on true
    order by by_model.provider collate "C", by_model.model collate "C";
end
$function$;

comment on function agui.usage is
    'Returns the tokens that the lineage of a run (null: the head) used, a row for each provider '
    'and model, as RUN_FINISHED and RUN_ERROR report them, else CUSTOM events, in the spellings of AG-UI, of '
    'TanStack and of Agent Framework, and where agui.map_usage says; at least one row, of nulls if no run '
    'reported any. lineage => false: only those of the run itself. whole_thread => true: those of '
    'all runs of the thread, on all branches, each run once. The calls of subagents are in the '
    'count of their run, and a run that resumes another reports only its own calls, so nothing is '
    'counted twice. Of a run that has ended the last report counts, because each says what the run used so far; the '
    'ends of TanStack, one for each call of the model, add up. A count that is no whole number from 0 to 2^53 - 1 is left out. Where an '
    'entry has no totalTokens, the sum of inputTokens and outputTokens stands for it. Reads the '
    'ends in the log, and the rest of a run whose end reports nothing. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, 22023 '
    'whole_thread with a run or without the lineage.';
