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

comment on function agui.history(text, text, bigint, text[], timestamptz, timestamptz, int, boolean, int, interval, boolean, text, int) is
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

revoke execute on function agui.history(text, text, bigint, text[], timestamptz, timestamptz, int, boolean, int, interval, boolean, text, int) from public;
