-- agui.compact_events: a shorter stream with the same result, run by run, as
-- compaction.CompactEvents makes it in Go.
--
--   shape stream     each message and call as a start, one piece and an end, where it began
--   shape snapshot   one MESSAGES_SNAPSHOT and one STATE_SNAPSHOT before the end of the last run.
--                    Earlier runs have the shape stream, because a list in each would grow with the
--                    square.
--
--    events ─► repaired (fold/repair) ─► compact_runs ─► compared ─► repeated until nothing changes
--                                        rules for       both folded
--                                        ordinary streams
--
-- - Events that carry something of their own stay as they are, in order.
-- - compact_step folds each compact form and compares it with the original. If an odd stream would
--   mean something else in it, the next safer form is used, and in the last resort the run as it
--   came. So the rules of compact_runs need to cover ordinary streams only.
-- - One step may produce something that the next can compact further. A stream that does not reach
--   a fixed point is only repaired. So the function is idempotent.

-- route: any node
create or replace function agui.compact_events(events json, shape text default 'stream')
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    compacted text := events;
    next_step text;
begin
    if shape is null or shape not in ('stream', 'snapshot') then
        raise exception using
            errcode = 'UI013',
            message = format('unknown shape %s: use "stream" or "snapshot"', coalesce('"' || shape || '"', 'null'));
    elsif events is null or json_typeof(events) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('events is %s, expected a JSON array of AG-UI events', coalesce('a JSON ' || json_typeof(events), 'null'));
    end if;

    if exists (select from json_array_elements(events) as event where json_typeof(event) <> 'object') then
        raise exception using
            errcode = 'UI008',
            message = 'events contains a value that is not a JSON object; each AG-UI event must be one';
    end if;

    for step in 1 .. 4 loop
        next_step := agui_internal.compact_step(agui_internal.repaired_events(compacted::json), shape);
        if next_step = compacted then
            return compacted::json;
        end if;
        compacted := next_step;
    end loop;
    return agui_internal.repaired_events(events);
end
$function$;

comment on function agui.compact_events is
    'Returns the compacted stream of a JSON array of events: fewer events with the same messages, '
    'state, interrupts and open chunks. The function is idempotent. Shape stream: each message and '
    'tool call becomes START, one CONTENT or ARGS, and END. Shape snapshot: one MESSAGES_SNAPSHOT '
    'and one STATE_SNAPSHOT before the end of the last run. RUN_STARTED.input.messages keeps the '
    'messages that no earlier event brought, and those of subagents. RAW, CUSTOM, STEP_*, '
    'SUBAGENT_*, the other RUN_* and unknown events stay unchanged. If a run continues after its '
    'end, ends in the middle of a message or call, or lacks its beginning, the events that the '
    'protocol requires are added. '
    'Errors: UI008 events is not a JSON array of objects, UI013 unknown shape, UI023 the fold '
    'exceeds a limit.';

-- Folds the given events and their compact form, and uses a form only if the results are equal. So
-- every stream is compacted correctly, and the rules of the compact forms
-- (agui_internal.compact_runs) only need to cover ordinary streams.
-- All runs are tried at once, then a binary search finds what differs: a long thread takes two
-- folds, not two for each run. In shape snapshot only the last run has that shape, because a list
-- of all messages in each run would make the size grow with the square of the runs.
create or replace function agui_internal.compact_step(events json, shape text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    run         record;
    originals   text[] := '{}';
    streams     text[] := '{}';  -- the best compact form of each run without a snapshot
    others      text[] := '{}';  -- the second-best form, null if there is none
    heads       text[] := '{}';  -- the parts of a run around its snapshots, null if there are none
    tails       text[] := '{}';
    states      text[] := '{}';
    has_changes boolean[] := '{}';

    compacted   text[] := '{}';
    forms       text[];
    form        text;
    first_run   int := 1;
    last_run    int;
    at_once     int;
    streamed    int;   -- the number of runs in shape stream
    truth       agui_internal.fold;  -- the fold of the originals
    replica     agui_internal.fold;  -- the fold of their compact forms
    truth_end   agui_internal.fold;
    replica_end agui_internal.fold;
    reopening   text;
    gives_away  boolean;
    fits        boolean;
begin
    for run in select * from agui_internal.compact_runs(events) loop
        originals := array_append(originals, run.original);
        streams := array_append(streams, coalesce(run.behind_snapshot, run.stream, run.original));
        others := array_append(others, case when run.behind_snapshot is not null then run.stream end);
        heads := array_append(heads, run.head);
        tails := array_append(tails, run.tail);
        states := array_append(states, run.state);
        has_changes := array_append(has_changes, run.changes_messages);
    end loop;

    streamed := cardinality(originals) - (shape = 'snapshot')::int;
    at_once := streamed;

    while first_run <= cardinality(originals) loop
        last_run := greatest(first_run, least(first_run + at_once - 1, streamed));
        truth_end := agui_internal.fold_given(truth, array_to_string(originals[first_run : last_run], ','));
        -- A list of messages may assign what is open in chunks to another agent than the chunks do.
        gives_away := exists (
            select from json_array_elements(agui_internal.json_guard(truth_end.lanes)::json) as lane
            cross join lateral agui_internal.repair_subject(
                truth_end, case lane ->> 'kind' when 'tool' then 2 else 1 end, agui_internal.json_string_token((lane -> 'id')::text)
            ) as subject
            where subject.is_there
            and agui_internal.json_string_token(agui_internal.json_string_member(lane, 'lane'))
                <> coalesce(agui_internal.json_string_token(subject.owner), '')
        );
        if gives_away and others[last_run] is not null then
            streams[last_run] := others[last_run];
            others[last_run] := null;
        end if;
        forms := array[array_to_string(streams[first_run : last_run], ',')];
        if first_run = last_run then
            forms := forms || others[first_run] || originals[first_run];
            if first_run > streamed and heads[first_run] is not null and not gives_away then
                forms := agui_internal.compact_snapshots(
                    heads[first_run], tails[first_run], states[first_run], has_changes[first_run], truth, truth_end
                ) || forms;
            end if;
        end if;

        -- Chunks that are open at the end have become complete messages: reopen them for later
        -- chunks.
        reopening := agui_internal.compact_lanes(truth_end);

        foreach form in array forms loop
            continue when form is null;
            if form <> originals[first_run] then
                form := concat_ws(',', nullif(form, ''), reopening);
            end if;
            replica_end := agui_internal.fold_given(replica, form);
            fits := agui_internal.fold_difference(truth_end, replica_end) is null;
            exit when fits;
        end loop;

        if fits then
            compacted := array_append(compacted, nullif(form, ''));
            truth := truth_end;
            replica := replica_end;
            first_run := last_run + 1;
            at_once := at_once * 2;
        elsif last_run > first_run then
            at_once := (last_run - first_run + 1) / 2;
        else
            -- The part before has the same meaning in another form (for example, two messages that
            -- are one in the original).
            return events;
        end if;
    end loop;

    return '[' || array_to_string(compacted, ',') || ']';
end
$function$;

comment on function agui_internal.compact_step is
    'The compacted events in a shape, run by run; each run in the best form with the same meaning. '
    'See agui.compact_events.';

-- Divides the events of each run into blocks, each about one message, call or activity, or about
-- the state, and writes a block at the place of its first event. A MESSAGES_SNAPSHOT may change
-- what precedes it, so blocks end there. This function has the rules for ordinary streams only;
-- agui_internal.compact_step detects where the result would differ.
-- Texts are guarded (agui_internal.json_guard), except those of events that stay unchanged.
create or replace function agui_internal.compact_runs(
    in events json,
    out original text,
    out stream text,
    out behind_snapshot text,
    out head text,
    out tail text,
    out state text,
    out changes_messages boolean
)
returns setof record
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    guarded constant json := agui_internal.json_guard(events::text)::json;
    has_chunks constant boolean := strpos(events::text, '_CHUNK') > 0 or strpos(events::text, '\u') > 0;
    documented record;

    -- The state and the activities at the end of each part of the stream, up to the next
    -- RUN_STARTED or MESSAGES_SNAPSHOT.
    documents      agui_internal.fold;
    part_numbers   int[] := '{}';
    part_states    text[] := '{}';
    activity_parts int[] := '{}';
    activity_ids   text[] := '{}';
    activities     text[] := '{}';
begin
    for documented in
        with event as (
            select
                element.type,
                element.id,
                element.raw,
                element.position,
                count(*) filter (where element.type in ('RUN_STARTED', 'MESSAGES_SNAPSHOT')) over (order by element.position) as part,
                element.type = any (agui_internal.event_types('show activity', 'patch activity', 'show or patch activity')) as is_activity,
                count(*) filter (where element.type = any (agui_internal.event_types('show activity', 'patch activity', 'show or patch activity'))) over () > 0 as has_activities
            from rows from (json_to_recordset(guarded) as (type text, "messageId" json), json_array_elements(events))
                with ordinality as element (type, id, raw, position)
        )
        select
            event.part::int,
            string_agg(event.raw::text, ',' order by event.position) as events,
            array_agg(agui_internal.json_string_token(event.id::text)) filter (where event.is_activity) as activity_ids
        from event
        where event.type = any (agui_internal.event_types('set state', 'patch state', 'start run'))
        or event.is_activity
        or event.has_activities and event.type = 'MESSAGES_SNAPSHOT'
        group by event.part
        order by event.part
    loop
        documents := agui_internal.fold_given(documents, documented.events);

        -- Other messages have no effect here.
        select
            coalesce(array_agg(message.id order by message.position), '{}'),
            coalesce(array_agg(message.body order by message.position), '{}'),
            coalesce(array_agg('activity'::text), '{}'),
            array_fill(null::int, array[count(*)::int])
        into documents.message_ids, documents.bodies, documents.roles, documents.message_nos
        from unnest(documents.message_ids, documents.roles, documents.bodies) with ordinality as message (id, role, body, position)
        where message.role = 'activity';

        part_numbers := array_append(part_numbers, documented.part);
        part_states := array_append(part_states, documents.state);
        if documented.activity_ids is not null then
            select
                activity_parts || array_agg(documented.part),
                activity_ids || array_agg(activity.id),
                activities || array_agg(activity.body)
            into activity_parts, activity_ids, activities
            from unnest(agui_internal.fold_keys(documents.message_ids, documents.bodies), documents.bodies) as activity (id, body)
            where activity.id = any (documented.activity_ids);
        end if;
    end loop;

    return query
    with element as materialized (
        select
            element.*,
            count(*) filter (where element.type = 'RUN_STARTED') over in_order as run,
            count(*) filter (where element.type in ('RUN_STARTED', 'MESSAGES_SNAPSHOT')) over in_order as part,
            max(element.position) filter (where element.type = 'MESSAGES_SNAPSHOT') over in_order as listed_at,
            role.part as kind,
            role.does,
            chunk.id as chunk_id,
            coalesce(chunk.starts, role.does = 'start', false) as starts,
            coalesce(chunk.proceeds, role.does = 'continue', false) as proceeds,
            -- The stream of a chunk ends at the latest with the events.
            coalesce(chunk.starts, role.does = 'end', false) as ends
        from rows from (
            json_to_recordset(guarded) as (
                type text,
                "messageId" json,
                "toolCallId" json,
                delta json,
                "subagentRunId" json,
                metadata json,
                role json,
                name json,
                "toolCallName" json,
                "parentMessageId" json
            ),
            json_array_elements(guarded),
            json_array_elements(events)
        ) with ordinality as element (
            type, message_id, tool_call_id, delta, owner, metadata, role, name, tool_call_name, parent_message_id, body, raw, position
        )
        left join agui_internal.event_roles() as role on role.type = element.type and role.part in ('text', 'tool', 'reasoning')
        left join agui_internal.compact_chunks(case when has_chunks then guarded else '[]' end) as chunk on chunk.position = element.position
        window in_order as (order by element.position)
    ),
    event as materialized (
        select
            element.position, element.run, element.part, element.listed_at, element.type, element.body, element.raw, element.kind,
            element.does, element.starts, element.proceeds, element.ends,
            coalesce(
                element.chunk_id,
                agui_internal.json_string_token((case when element.kind = 'tool' then element.tool_call_id else element.message_id end)::text)
            ) as id,
            element.delta::text as delta,
            element.owner::text as owner,
            element.metadata::text as metadata,
            element.role::text as role,
            element.name::text as name,
            element.tool_call_name::text as tool_name,
            element.parent_message_id::text as parent,
            -- The reducer skips such an event, but another reader may not. So its run stays
            -- unchanged.
            coalesce(case
                when element.kind is not null then
                    element.chunk_id is null and (
                        element.does = 'chunk'
                        or left((case when element.kind = 'tool' then element.tool_call_id else element.message_id end)::text, 1)
                            is distinct from '"'
                        or element.proceeds and element.delta is null
                    )
                    or left(element.delta::text, 1) <> '"'
                    or left(element.metadata::text, 1) <> '{'
                    or left(element.owner::text, 1) <> '"'
                    or element.starts and (
                        left(element.role::text, 1) <> '"'
                        or left(element.name::text, 1) <> '"'
                        or left(element.parent_message_id::text, 1) <> '"'
                        or element.kind = 'tool' and left(element.tool_call_name::text, 1) is distinct from '"'
                    )
                when element.type = any (agui_internal.event_types('set state')) then
                    coalesce(element.body -> 'snapshot', element.body -> 'state') is null or left(element.owner::text, 1) <> '"'
                when element.type = any (agui_internal.event_types('patch state')) then
                    json_typeof(coalesce(element.body -> 'delta', element.body -> 'patch')) not in ('array', 'object')
                    or left(element.owner::text, 1) <> '"'
                when element.type = any (agui_internal.event_types('show activity', 'patch activity', 'show or patch activity')) then
                    left(element.message_id::text, 1) is distinct from '"'
                    or json_typeof(element.body -> 'activityType') is distinct from 'string'
                    or left(element.metadata::text, 1) <> '{'
                    or left(element.owner::text, 1) <> '"'
                when element.type = 'MESSAGES_SNAPSHOT' then
                    json_typeof(element.body -> 'messages') is distinct from 'array' or left(element.metadata::text, 1) <> '{'
                when element.type = 'RUN_STARTED' then json_typeof(element.body -> 'input') not in ('object', 'null')
                when element.type = 'RUN_FINISHED' then
                    element.body -> 'outcome' ->> 'type' = 'interrupt'
                    and json_typeof(element.body -> 'outcome' -> 'interrupts') is distinct from 'array'
            end, false) as is_odd
        from element
    ),

    -- Messages in RUN_STARTED that the lineage already has. A MESSAGES_SNAPSHOT keeps those that it
    -- names, activities and reasoning.
    mention as (
        select
            event.position,
            0::bigint as input_no,
            null::json as input,
            case
                when event.kind = 'tool' then coalesce(nullif(agui_internal.json_string_token(event.parent), '""'), event.id)
                else event.id
            end as id,
            null::bigint as listed_at,
            event.kind = 'reasoning' or event.type = any (agui_internal.event_types('show activity', 'patch activity', 'show or patch activity')) as stays
        from event
        where event.starts or event.type = any (agui_internal.event_types('add result', 'show activity', 'show or patch activity'))
        union all
        select
            event.position,
            message.position,
            case when event.type = 'RUN_STARTED' then message.value end,
            case when json_typeof(message.value) = 'object' then agui_internal.json_string_token((message.value -> 'id')::text) end,
            event.listed_at,
            case when json_typeof(message.value) = 'object' then (message.value -> 'role')::text in ('"reasoning"', '"activity"') end
        from event
        cross join lateral (
            select case event.type
                when 'MESSAGES_SNAPSHOT' then event.body -> 'messages'
                else case when json_typeof(event.body -> 'input') = 'object' then event.body -> 'input' -> 'messages' end
            end as list
        ) as messages
        cross join lateral json_array_elements(case when json_typeof(messages.list) = 'array' then messages.list end)
            with ordinality as message (value, position)
        where event.type in ('MESSAGES_SNAPSHOT', 'RUN_STARTED')
    ),
    input as (
        select
            mention.position,
            mention.input_no,
            mention.input::text as message,
            json_typeof(mention.input) = 'string' or json_typeof(mention.input) = 'object' and (
                left(mention.id, 1) is distinct from '"'
                or mention.known_at is null
                or coalesce(mention.known_at < mention.listed_at, false)
                -- It also tells verifiers the owner of the message, for events that do not state
                -- it.
                or mention.input ->> 'subagentRunId' is not null
            ) as is_new
        from (
            select
                mention.*,
                max(case when mention.stays then 9223372036854775807 else mention.position end) over (
                    partition by mention.id
                    order by mention.position, mention.input_no
                    rows between unbounded preceding and 1 preceding
                ) as known_at
            from mention
        ) as mention
        where mention.input is not null
    ),
    started as materialized (
        select
            input.position,
            '[' || coalesce(string_agg(input.message, ',' order by input.input_no) filter (where input.is_new), '') || ']' as messages
        from input
        group by input.position
        having not bool_and(input.is_new)
    ),

    -- After a MESSAGES_SNAPSHOT, what precedes the first start of an id is a separate block: its
    -- end is not that of the start.
    start as (
        select event.part, event.kind, event.id, min(event.position) filter (where event.starts) as position
        from event
        where event.kind is not null and not event.is_odd
        group by event.part, event.kind, event.id
        having min(event.position) filter (where event.starts) > min(event.position)
    ),
    block as (
        select
            event.run,
            event.part,
            event.kind,
            event.id,
            min(event.position) as position,
            bool_or(event.starts) as is_started,
            coalesce(
                (array_agg(event.ends order by event.position desc) filter (where event.starts or event.ends))[1],
                false
            ) as is_ended,
            bool_or(event.proceeds) as has_pieces,
            string_agg(substr(event.delta, 2, length(event.delta) - 2), '' order by event.position) filter (where event.proceeds) as text,
            agui_internal.merged_metadata(array_agg(event.metadata order by event.position) filter (where event.metadata is not null)) as metadata,
            (array_agg(
                array[event.role, event.name, event.parent, event.owner] order by event.position
            ) filter (where event.starts))[1:1] as opening,
            (array_agg(event.tool_name order by event.position desc) filter (where event.starts))[1] as tool_name,
            case event.kind when 'tool' then '"toolCallId":' else '"messageId":' end || event.id as id_field
        from event
        left join start on start.part = event.part and start.kind = event.kind and start.id = event.id
        where event.kind is not null and not event.is_odd
        group by event.run, event.part, event.kind, event.id, event.position < start.position
    ),
    written as materialized (
        select
            block.*,
            role.continues,
            role.closes,
            '{' || concat_ws(
                ',',
                '"type":"' || role.opens || '"',
                block.id_field,
                '"role":' || case block.kind when 'text' then coalesce(block.opening[1][1], '"assistant"') when 'reasoning' then '"reasoning"' end,
                '"name":' || case when block.kind = 'text' then block.opening[1][2] end,
                '"toolCallName":' || block.tool_name,
                '"parentMessageId":' || case when block.kind = 'tool' then block.opening[1][3] end,
                '"subagentRunId":' || block.opening[1][4]
            ) as opening_text,
            '"metadata":' || block.metadata as metadata_field
        from block
        join agui_internal.event_roles() as role on role.part = block.kind and role.type = role.opens
    ),
    document as (
        -- Activities.
        select
            event.run,
            coalesce(min(event.position) filter (where event.type <> all (agui_internal.event_types('patch activity'))), min(event.position)) as position,
            true as is_message,
            '{' || concat_ws(
                ',',
                '"type":"ACTIVITY_SNAPSHOT"',
                '"messageId":' || event.id,
                '"activityType":' || (activity.body -> 'activityType')::text,
                '"content":' || (activity.body -> 'content')::text,
                '"subagentRunId":' || (activity.body -> 'subagentRunId')::text,
                '"metadata":' || agui_internal.merged_metadata(
                    array_agg(event.metadata order by event.position) filter (where event.metadata is not null)
                )
            ) || '}' as text
        from event
        join (
            select activity.part, activity.id, guarded.body
            from unnest(activity_parts, activity_ids, activities) as activity (part, id, body)
            cross join lateral (select agui_internal.json_guard(activity.body)::json as body) as guarded
            -- A patch can give an activity content that no ACTIVITY_SNAPSHOT can have.
            where json_typeof(guarded.body -> 'content') = 'object'
        ) as activity
            on activity.part = event.part and activity.id = event.id
        where event.type = any (agui_internal.event_types('show activity', 'patch activity', 'show or patch activity')) and not event.is_odd
        group by event.run, event.part, event.id, activity.body::text, (activity.body -> 'activityType')::text, (activity.body -> 'content')::text,
            (activity.body -> 'subagentRunId')::text
    ),
    item as (
        select
            event.run,
            event.position,
            coalesce(event.type = any (agui_internal.event_types('add result', 'encrypt', 'list messages')), false) as is_message,
            false as is_state,
            coalesce(agui_internal.json_unguard(agui_internal.compact_input(event.body, started.messages)), event.raw::text) as text
        from event
        left join started on started.position = event.position
        where event.kind is null
        and (event.type = any (agui_internal.event_types(
            'set state', 'patch state', 'show activity', 'patch activity', 'show or patch activity'
        ))) is not true
        union all
        select
            written.run,
            written.position,
            true,
            false,
            agui_internal.json_unguard(concat_ws(
                ',',
                case when written.is_started then concat_ws(',', written.opening_text, written.metadata_field) || '}' end,
                case when written.text <> '' or not written.is_started and (written.has_pieces or not written.is_ended) then
                    '{' || concat_ws(
                        ',',
                        '"type":"' || written.continues || '"',
                        written.id_field,
                        '"delta":"' || coalesce(written.text, '') || '"',
                        case when not written.is_started and not written.is_ended then written.metadata_field end
                    ) || '}'
                end,
                case when written.is_ended then
                    '{' || concat_ws(
                        ',',
                        '"type":"' || written.closes || '"',
                        written.id_field,
                        case when not written.is_started then written.metadata_field end
                    ) || '}'
                end
            ))
        from written
        union all
        select document.run, document.position, document.is_message, false, agui_internal.json_unguard(document.text)
        from document
        union all
        select last.run, last.position, false, true, '{"type":"STATE_SNAPSHOT","snapshot":' || part.state || '}'
        from (
            select event.run, max(event.position) as position, max(event.part) as part
            from event
            where event.type = any (agui_internal.event_types('set state', 'patch state'))
            group by event.run
        ) as last
        join unnest(part_numbers, part_states) as part (part, state) on part.part = last.part
    ),
    run as (
        select
            event.run,
            bool_or(event.is_odd) as is_odd,
            min(event.position) filter (where event.type in ('RUN_FINISHED', 'RUN_ERROR')) as ended_at,
            max(event.position) filter (where event.type = 'MESSAGES_SNAPSHOT') as snapshot_at
        from event
        group by event.run
    ),
    -- Whether something is open at the last snapshot of the run, or begins both before and after
    -- it.
    crossing as (
        select written.run, written.kind, written.id
        from written
        join run on run.run = written.run
        where written.position < run.snapshot_at and not written.is_ended
        or run.snapshot_at is not null
        group by written.run, written.kind, written.id, run.snapshot_at
        having bool_or(written.position < run.snapshot_at and not written.is_ended)
        or bool_or(written.position < run.snapshot_at) and bool_or(written.position > run.snapshot_at)
    ),
    -- What a run in progress has open.
    opened as (
        select
            last.run,
            agui_internal.json_unguard(string_agg(last.opening_text || '}', ',' order by last.first_position)) as text
        from (
            select distinct on (written.run, written.kind, written.id)
                written.run,
                written.opening_text,
                written.is_ended,
                written.is_started,
                min(written.position) over (partition by written.run, written.kind, written.id) as first_position
            from written
            order by written.run, written.kind, written.id, (written.is_started or written.is_ended) desc, written.position desc
        ) as last
        where last.is_started and not last.is_ended
        group by last.run
    ),
    -- The texts of a run are long, so they are in no row that is sorted.
    original as (
        select event.run, string_agg(event.raw::text, ',' order by event.position) as text
        from event
        group by event.run
    ),
    form as (
        select
            item.run,
            string_agg(item.text, ',' order by item.position) as whole,
            string_agg(item.text, ',' order by item.position)
                filter (where not item.is_message or item.position >= run.snapshot_at) as behind_snapshot,
            string_agg(item.text, ',' order by item.position)
                filter (where not item.is_message and not item.is_state and (item.position < run.ended_at) is not false) as head,
            string_agg(item.text, ',' order by item.position)
                filter (where not item.is_message and not item.is_state and item.position >= run.ended_at) as tail,
            string_agg(item.text, ',') filter (where item.is_state) as state,
            bool_or(item.is_message) as changes_messages
        from item
        join run on run.run = item.run
        where not run.is_odd
        group by item.run
    )
    select
        original.text,
        form.whole,
        case when run.snapshot_at is not null and run.run not in (select crossing.run from crossing) then form.behind_snapshot end,
        case when form.run is not null then coalesce(form.head, '') end,
        coalesce(form.tail, opened.text),
        form.state,
        form.changes_messages
    from run
    join original on original.run = run.run
    left join form on form.run = run.run
    left join opened on opened.run = run.run and run.ended_at is null
    order by run.run;
end
$function$;

comment on function agui_internal.compact_runs is
    'The runs of a stream in compact forms (JSON texts of events, joined by commas): the original '
    'events; the events with a block for each message, call, activity and the state (null: cannot '
    'be compacted); the same without the messages before the last MESSAGES_SNAPSHOT, if that is '
    'possible; and the parts of shape snapshot.';

-- Tracks the open streams of chunks as agui_internal.fold_events does, for well-formed events.
create or replace function agui_internal.compact_chunks(
    in events json,
    out "position" bigint,
    out id text,
    out starts boolean,
    out proceeds boolean
)
returns setof record
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    event record;
    chunk record;
    lanes jsonb;
begin
    for event in
        select
            element.position,
            element.type,
            element.raw,
            role.part,
            (case role.named_by when 'toolCallId' then element.tool_call_id else element.message_id end)::text as id,
            element.delta is not null as has_delta,
            element.owner::text as owner
        from rows from (
            json_to_recordset(events) as (type text, "messageId" json, "toolCallId" json, delta json, "subagentRunId" json),
            json_array_elements(events)
        ) with ordinality as element (type, message_id, tool_call_id, delta, owner, raw, position)
        left join agui_internal.event_roles() as role on role.type = element.type and role.does = 'chunk'
        order by element.position
    loop
        if event.part is not null then
            continue when left(event.id, 1) <> '"' or left(event.owner, 1) <> '"';
            chunk := agui_internal.fold_chunk(lanes, event.part, agui_internal.json_string_token(event.id), event.owner);
            continue when chunk.id is null;
            lanes := chunk.lanes;
            position := event.position;
            id := chunk.id;
            starts := not chunk.goes_on;
            proceeds := event.has_delta or case
                when starts then event.raw -> 'rawEvent' is not null
                else agui_internal.fold_chunk_has_content(event.raw)
            end;
            return next;
        elsif lanes is null then
            continue;
        elsif event.type = any (agui_internal.event_types('closes all')) then
            lanes := null;
        elsif event.type = any (agui_internal.event_types('closes own', 'closes named')) then
            lanes := agui_internal.fold_close_lane(lanes, event.owner);
        end if;
    end loop;
end
$function$;

comment on function agui_internal.compact_chunks is
    'Interprets the chunks among events (guarded JSON): their id, whether they start a message or '
    'call, and whether they continue it. A chunk without a stream has no row.';

create or replace function agui_internal.compact_input(started json, messages text)
returns text
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select '{' || string_agg(
        to_json(field.key)::text || ':' || case
            when field.key <> 'input' then field.value::text
            else (
                select '{' || string_agg(
                    to_json(member.key)::text || ':' || case when member.key = 'messages' then messages else member.value::text end,
                    ','
                    order by member.position
                ) || '}'
                from json_each(started -> 'input') with ordinality as member (key, value, position)
            )
        end,
        ','
        order by field.position
    ) || '}'
    from json_each(started) with ordinality as field (key, value, position)
$function$;

comment on function agui_internal.compact_input is
    'A RUN_STARTED event (guarded JSON) with another list of messages in its input.';

-- A MESSAGES_SNAPSHOT leaves the messages that a client has in place, appends new ones, and keeps
-- activities and reasoning if it names none. So if one snapshot does not produce the list, a first
-- one clears what is there.
create or replace function agui_internal.compact_snapshots(
    head text,
    tail text,
    state text,
    changes_messages boolean,
    before agui_internal.fold,
    after agui_internal.fold
)
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    claim    constant text := case
        when 'activity' = any (before.roles) then ',"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}'
        else ''
    end;
    needs_claim constant boolean := 'activity' = any (after.roles) is not true;
    list     constant text := '{"type":"MESSAGES_SNAPSHOT","messages":[' || array_to_string(after.bodies, ',') || ']';
    cleared  constant text := '{"type":"MESSAGES_SNAPSHOT","messages":['
        || case when 'reasoning' = any (before.roles) then '{"id":"cleared","role":"reasoning","content":""}' else '' end
        || ']' || claim || '}';
begin
    if not changes_messages then
        return array[concat_ws(',', nullif(head, ''), state, tail)];
    end if;
    return array[
        concat_ws(',', nullif(head, ''), list || case when needs_claim then claim else '' end || '}', state, tail),
        concat_ws(',', nullif(head, ''), cleared, list || '}', state, tail)
    ];
end
$function$;

comment on function agui_internal.compact_snapshots is
    'The forms of a run in shape snapshot, the best first: the remaining events before its end, '
    'the messages, its state, its end.';

create or replace function agui_internal.compact_lanes(fold agui_internal.fold)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if fold.lanes is null then
        return null;
    end if;
    return (
        with lane as (
            select
                lane.value ->> 'kind' as kind,
                agui_internal.json_string_token((lane.value -> 'id')::text) as id,
                nullif((lane.value -> 'lane')::text, 'null') as owner,
                lane.position
            from json_array_elements(agui_internal.json_guard(fold.lanes)::json) with ordinality as lane (value, position)
        ),
        call as (
            select distinct on (id)
                agui_internal.json_string_token((call.value -> 'id')::text) as id,
                coalesce((call.value #> '{function,name}')::text, '""') as name
            from unnest(fold.bodies) with ordinality as message (body, position)
            cross join lateral (select agui_internal.json_guard(message.body)::json -> 'toolCalls' as list) as calls
            cross join lateral json_array_elements(case when json_typeof(calls.list) = 'array' then calls.list end)
                with ordinality as call (value, position)
            where strpos(message.body, 'toolCalls') > 0
            and exists (select from lane where lane.kind = 'tool')
            and json_typeof(call.value) = 'object'
            order by id, message.position, call.position
        )
        select agui_internal.json_unguard(string_agg(
            '{' || concat_ws(
                ',',
                concat('"type":"', chunk.type, '","', chunk.named_by, '":', lane.id),
                '"toolCallName":' || call.name,
                '"subagentRunId":' || lane.owner
            ) || '}',
            ','
            order by lane.position
        ))
        from lane
        join agui_internal.event_roles() as chunk on chunk.part = lane.kind and chunk.type = chunk.chunks
        left join call on lane.kind = 'tool' and call.id = lane.id
        where lane.kind <> 'tool' or call.id is not null
    );
end
$function$;

comment on function agui_internal.compact_lanes is
    'Chunks (JSON texts, joined by commas) that reopen what is open in a fold and add nothing; '
    'null if nothing is open. A tool call that was removed stays closed.';
