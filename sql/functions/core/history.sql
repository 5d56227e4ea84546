-- Where and when something was said in a log: for agui.history, agui.tool_calls, agui.activities,
-- agui.session_messages and agui.last_messages; and the usage that a run reports.
--
-- Contents come from the fold, snapshots included. Places come from the log, because no message
-- carries its seq:
--
--   event_references   A whole lineage in one pass, for agui.tool_calls and its like. It costs
--                      about as much again as reading the events.
--   message_places     A page of a log read backwards, a thousand events at once, for
--                      agui.last_messages.
--
-- - message_places reads until all messages of the page are found and the part that was read last
--   brings none of them. Clients send the whole conversation with each run. So a message that only
--   lists have is not at its beginning as long as the list before has it, too.
-- - A place is in one run and depends on the log alone, never on snapshots. The cursor has the
--   position and the first seq, from which the page before begins to read.
-- - agui.history joins what streams token by token under one rule: a piece may pass another event
--   only if that does not change what they mean together. So any other event of the run ends a
--   group of pieces. What streams in parallel is joined separately.
-- - A page of it ends before the event that would be one row, or byte, too many, and holds all
--   events up to there, whatever groups are open. So its greatest last_seq says where the next page
--   begins: nothing is missed and nothing comes twice, also while events are appended.
-- - Times never fall along the log. So reads by time find their seq by binary search (core/read).
--
-- `go test ./test -run 'History|LastMessages'` compares pages of generated streams with the whole
-- log.

create or replace function agui_internal.event_references(leaf agui.run, at_seq bigint, types text[])
returns setof agui_internal.event_reference
language plpgsql
stable
parallel safe
rows 10000
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $function$
declare
    until constant bigint := coalesce(at_seq, 9223372036854775807);
    run_nos      int[];
    through_seqs bigint[];
begin
    if 'RUN_STARTED' = any (types) then
        select array_agg(ancestor.run_no), array_agg(least(coalesce(ancestor.last_seq, until), until))
        into run_nos, through_seqs
        from agui_internal.ancestors(leaf) as ancestor;
    end if;

    return query
    with given as materialized (
        select place.seq, place.is_start, agui_internal.json_guarded(beside.input) as input
        from agui_internal.input_places(leaf.thread_key, run_nos, through_seqs) as place
        cross join lateral (
            select given.input from agui.input as given where given.thread_key = leaf.thread_key and given.run_no = place.run_no limit 1
        ) as beside
    ),
    event as (
        select
            batch.first_seq + element.position - 1 as seq,
            batch.run_id,
            element.type,
            coalesce(agui_internal.json_timestamp(element.told), agui_internal.event_time(batch.recorded_at, element.earlier_us)) as created_at,
            agui_internal.json_string_text(element.message_id::text) as message_id,
            agui_internal.json_string_text(element.tool_call_id::text) as call_id,
            agui_internal.json_string_text(element.parent_message_id::text) as parent_id,
            element.owner::text as owner,
            case
                when given.seq is not null then given.input -> 'messages'
                when element.type = 'RUN_STARTED' and json_typeof(element.input) = 'object' then element.input -> 'messages'
            end as input_list,
            case when element.type = 'MESSAGES_SNAPSHOT' then element.messages end as snapshot_list,
            element.type = any (types) and element.type not in ('RUN_STARTED', 'MESSAGES_SNAPSHOT') as stands_alone,
            case when element.type = 'RUN_ERROR' then '{' || concat_ws(
                ',',
                '"message":' || coalesce(element.message::text, 'null'),
                '"code":' || nullif(element.code::text, 'null')
            ) || '}' end as error
        from (
            select stored.*, ancestor.run_id, agui_internal.json_guarded(stored.events) as guarded
            from agui_internal.ancestors(leaf) as ancestor
            cross join lateral (
                select of_run.*
                from agui.batch as of_run
                where of_run.thread_key = leaf.thread_key
                    and of_run.run_no = ancestor.run_no
                    and of_run.first_seq between ancestor.first_seq and least(coalesce(ancestor.last_seq, until), until)
                offset 0  -- one range of the index for each run
            ) as stored
            offset 0  -- so that a batch is guarded once, not once for each function that reads it
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.guarded) as (
                type text,
                "messageId" json,
                "toolCallId" json,
                "parentMessageId" json,
                "subagentRunId" json,
                "timestamp" json,
                input json,
                messages json,
                message json,
                code json
            ),
            unnest(batch.earlier_us)
        ) with ordinality as element (
            type, message_id, tool_call_id, parent_message_id, owner, told, input, messages, message, code, earlier_us, position
        )
        left join given on given.seq = batch.first_seq + element.position - 1
        where (element.type = any (types) or given.seq is not null)
            and batch.first_seq + element.position - 1 <= until
    ),
    chunk as (
        select event.*, count(coalesce(event.call_id, event.message_id)) over lane as stream
        from event
        where event.stands_alone and event.type = any (agui_internal.event_types('chunk text', 'chunk reasoning', 'chunk tool'))
        window lane as (partition by event.run_id, event.owner, event.type order by event.seq)
    ),
    item as (
        -- A run may begin with any event. Its input, which is beside the events, comes before that one.
        select event.seq, entry.position + list.items_before as position, event.run_id, list.type, event.created_at, entry.value as message
        from event
        cross join lateral (
            values
                ('RUN_STARTED', event.input_list, 0),
                (
                    'MESSAGES_SNAPSHOT', event.snapshot_list,
                    case when json_typeof(event.input_list) = 'array' then json_array_length(event.input_list) else 0 end
                )
        ) as list (type, items, items_before)
        cross join lateral json_array_elements(case when json_typeof(list.items) = 'array' then list.items end) with ordinality
            as entry (value, position)
        where list.items is not null
    )
    select
        event.seq, 0, event.run_id, event.type, event.created_at,
        case when event.type = any (agui_internal.event_types('brings parentMessageId')) then coalesce(nullif(event.parent_id, ''), event.call_id) else event.message_id end,
        event.call_id,
        event.type = any (agui_internal.event_types('add result')),
        event.error
    from (
        select event.seq, event.run_id, event.type, event.created_at, event.message_id, event.call_id, event.parent_id, event.error
        from event
        where event.stands_alone and event.type <> all (agui_internal.event_types('chunk text', 'chunk reasoning', 'chunk tool'))
        union all
        -- A chunk without an id continues the chunk before it.
        select
            chunk.seq, chunk.run_id, chunk.type, chunk.created_at,
            first_value(chunk.message_id) over stream,
            first_value(chunk.call_id) over stream,
            first_value(chunk.parent_id) over stream,
            null
        from chunk
        window stream as (partition by chunk.run_id, chunk.owner, chunk.type, chunk.stream order by chunk.seq)
    ) as event
    union all
    select
        item.seq, item.position::int, item.run_id, item.type, item.created_at,
        message.id,
        message.call_id,
        message.call_id is not null,
        null
    from item
    cross join lateral (
        select
            case when json_typeof(item.message) = 'object' then agui_internal.json_string_text((item.message -> 'id')::text) end as id,
            case when json_typeof(item.message) = 'object' then agui_internal.json_string_text((item.message -> 'toolCallId')::text) end as call_id
    ) as message
    where json_typeof(item.message) in ('object', 'string')
    union all
    select
        item.seq, item.position::int, item.run_id, item.type, item.created_at,
        agui_internal.json_string_text((item.message -> 'id')::text),
        agui_internal.json_string_text((call.value -> 'id')::text),
        false,
        null
    from item
    cross join lateral json_array_elements(
        case
            when json_typeof(item.message) = 'object' and json_typeof(item.message -> 'toolCalls') = 'array' then item.message -> 'toolCalls'
        end
    ) as call (value)
    where json_typeof(call.value) = 'object';
end
$function$;

comment on function agui_internal.event_references is
    'The references to messages and tool calls in the lineage of a run, up to at_seq (null: all of '
    'it), in events of the given types. Reads the whole log of the lineage.';

-- Before PostgreSQL 17 a parallel query cannot catch errors, so this is not parallel safe.
create or replace function agui_internal.json_or_null(document text)
returns json
language plpgsql
immutable
strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return document::json;
exception
    when data_exception or statement_too_complex then
        return null;
end
$$;

comment on function agui_internal.json_or_null is
    'Text as JSON; null if it is not valid JSON.';

-- The log says where a message comes from, and nothing else does. So it is read backwards: until all
-- messages are found, and the part that was read last has none of them. Clients send the whole
-- conversation with each run, so a message that only lists have is not yet at its beginning as long
-- as the list before has it, too.
create or replace function agui_internal.message_places(
    run    agui.run,
    at_seq bigint,
    ids    text[],
    roles  text[]
)
returns setof agui_internal.message_place
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
-- Planned once: a plan takes longer than the work. The planner expects few rows, and would compare
-- each with each.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off
set jit = off
as $function$
declare
    events_at_once constant int := 1000;
    until   constant bigint := coalesce(at_seq, 9223372036854775807);
    brings  constant text[] := agui_internal.event_types('brings messageId', 'brings parentMessageId');
    starts  constant text[] := agui_internal.event_types('brings parentMessageId');
    results constant text[] := agui_internal.event_types('add result');
    of_call constant text[] := agui_internal.event_types('start tool', 'continue tool', 'end tool', 'chunk tool');
    -- A set of text, in which a key is found by binary search.
    wanted  constant jsonb := (select jsonb_object_agg(listed.id, true) from unnest(ids) as listed (id) where listed.id is not null);
    part_nos int[];
    part_ids text[];
    missing text[] := array(select jsonb_object_keys(wanted));    -- nothing that was read brings them
    streamed text[] := '{}';     -- events of their own do
    listed_only text[] := '{}';  -- lists do, and nothing else
    key     constant uuid := run.thread_key;
    through bigint := least(coalesce(run.last_seq, until), until);
    read_to bigint;
    batch   record;
    -- The part of the log to read next: runs, or the end of a long one.
    run_nos int[];
    from_seqs    bigint[];
    through_seqs bigint[];
    size    bigint;
    part    agui_internal.message_mention[];
    news    record;
    mentions agui_internal.message_mention[] := '{}';
begin
    select array_agg(stored.part_no), array_agg(stored.message_id) into part_nos, part_ids
    from agui.input_part as stored
    where stored.thread_key = key and stored.kind = 'message' and wanted ? stored.message_id;

    while wanted is not null and run.run_no is not null loop
        run_nos := '{}';
        from_seqs := '{}';
        through_seqs := '{}';
        size := 0;
        while run.run_no is not null and size < events_at_once loop
            read_to := run.first_seq;
            if through - run.first_seq >= events_at_once - size then
                for batch in
                    select stored.first_seq
                    from agui.batch as stored
                    where stored.thread_key = key and stored.run_no = run.run_no and stored.first_seq between run.first_seq and through
                    order by stored.first_seq desc
                loop
                    read_to := batch.first_seq;
                    exit when through - read_to + 1 >= events_at_once - size;
                end loop;
            end if;
            run_nos := array_append(run_nos, run.run_no);
            from_seqs := array_append(from_seqs, read_to);
            through_seqs := array_append(through_seqs, through);
            size := size + through - read_to + 1;
            if read_to > run.first_seq then
                through := read_to - 1;
            else
                select parent.* into run
                from agui.run as parent
                where parent.thread_key = key and parent.run_no = run.parent_no;
                through := least(coalesce(run.last_seq, until), until);
            end if;
        end loop;

        part := array(select mention from agui_internal.message_mentions(key, run_nos, from_seqs, through_seqs, wanted, part_nos, part_ids) as mention);
        select
            coalesce(array_agg(brought.id) filter (where not brought.is_list), '{}') as streamed,
            coalesce(array_agg(brought.id) filter (where brought.is_list), '{}') as listed,
            coalesce(bool_or(brought.is_oldest), false) as has_any,
            exists (select from unnest(part) as list where list.is_list and list.run_no = run_nos[cardinality(run_nos)]) as has_list
        into news
        from (
            select named.id, mention.is_list, mention.run_no = run_nos[cardinality(run_nos)] as is_oldest
            from unnest(part) as mention
            cross join lateral unnest(
                case when mention.type = any (starts) then array[mention.parent_id, mention.call_id] else array[mention.message_id] end
            ) as named (id)
            where (mention.is_list or mention.type = any (brings)) and wanted ? named.id
        ) as brought;
        missing := array(select unnest(missing) except select unnest(news.streamed || news.listed));
        streamed := streamed || news.streamed;
        listed_only := array(select unnest(listed_only || news.listed) except select unnest(streamed));
        -- Pieces of other messages do not matter; those of calls may, if the call is found.
        mentions := mentions || array(
            select kept
            from unnest(part) as kept
            where kept.type = any (of_call) or kept.lane is not null or wanted ? kept.message_id or kept.entity_id is not null
        );
        exit when missing = '{}' and not news.has_any and (listed_only = '{}' or news.has_list);
    end loop;

    return query
    with mention as materialized (
        select
            told.run_no, told.first_seq, told.last_seq, told.type, told.is_list, told.entity_id,
            told.first_told, told.last_told, told.first_at, told.last_at,
            -- A chunk that names nothing continues the chunks before it.
            case when told.lane is null then told.message_id else first_value(told.message_id) over stream end as message_id,
            case when told.lane is null then told.call_id else first_value(told.call_id) over stream end as call_id,
            case when told.lane is null then told.parent_id else first_value(told.parent_id) over stream end as parent_id
        from (
            select
                listed.*,
                case
                    when listed.lane is not null
                        then count(coalesce(listed.call_id, listed.message_id)) over (partition by listed.run_no, listed.lane, listed.type order by listed.last_seq)
                end as stream
            from unnest(mentions) as listed
        ) as told
        window stream as (partition by told.run_no, told.lane, told.type, told.stream order by told.last_seq)
    ),
    -- A call is in its parent, if that is a message of the assistant, and otherwise in one with its own
    -- id. A result may have that id, too.
    call as materialized (
        select distinct on (mention.call_id) mention.call_id, wanted_message.id as message_id
        from mention
        join unnest(ids, roles) as wanted_message (id, role)
            on wanted_message.id = any (array[mention.parent_id, mention.call_id])
        where mention.type = any (starts) and wanted_message.role = 'assistant'
        order by mention.call_id, mention.first_seq, wanted_message.id = mention.parent_id desc
    ),
    named as (
        select mention.message_id as of_message, mention.*
        from mention
        where mention.type <> all (of_call) and mention.entity_id is null and wanted ? mention.message_id
        union all
        select call.message_id, mention.* from mention join call on call.call_id = mention.call_id where mention.type = any (of_call)
        union all
        select mention.entity_id, mention.* from mention where wanted ? mention.entity_id
        union all
        select call.message_id, mention.* from mention join call on call.call_id = mention.entity_id
    ),
    -- A result may also have the id of the message of its call.
    told as materialized (
        select listed.item, named.*
        from unnest(ids, roles) with ordinality as listed (id, role, item)
        join named on named.of_message = listed.id
        where named.is_list or named.entity_id is not null or (named.type = any (results)) = (listed.role = 'tool')
    ),
    begun as materialized (
        select distinct on (told.item) told.*
        from told
        where told.is_list or told.type = any (brings)
        order by told.item, told.first_seq
    ),
    updated as (
        select distinct on (told.item) told.*
        from told
        join begun on begun.item = told.item and begun.run_no = told.run_no
        where not told.is_list
        order by told.item, told.last_seq desc
    ),
    calls as (
        select
            part_of.item,
            json_agg(
                json_build_object(
                    'toolCallId', part_of.call_id, 'firstSeq', part_of.seqs[1], 'lastSeq', part_of.last_seq,
                    'startedAt', part_of.started_at, 'updatedAt', part_of.updated_at
                )
                order by part_of.seqs[1]
            ) as list
        from (
            select
                told.item,
                told.call_id,
                array_agg(told.first_seq order by told.first_seq) as seqs,
                max(told.last_seq) as last_seq,
                (array_agg(coalesce(agui_internal.json_timestamp(told.first_told::json), told.first_at) order by told.first_seq))[1] as started_at,
                (array_agg(coalesce(agui_internal.json_timestamp(told.last_told::json), told.last_at) order by told.last_seq desc))[1] as updated_at
            from told
            join begun on begun.item = told.item and begun.run_no = told.run_no
            where told.type = any (of_call)
            group by told.item, told.call_id
        ) as part_of
        group by part_of.item
    )
    select
        begun.item::int,
        of_run.run_id,
        begun.first_seq,
        greatest(begun.first_seq, updated.last_seq),
        coalesce(agui_internal.json_timestamp(begun.first_told::json), begun.first_at, of_run.started_at),
        case
            when updated.last_seq > begun.first_seq then coalesce(agui_internal.json_timestamp(updated.last_told::json), updated.last_at)
            else coalesce(agui_internal.json_timestamp(begun.first_told::json), begun.first_at, of_run.started_at)
        end,
        calls.list
    from begun
    cross join lateral (
        select stored.run_id, stored.started_at from agui.run as stored where stored.thread_key = key and stored.run_no = begun.run_no offset 0
    ) as of_run
    left join updated on updated.item = begun.item
    left join calls on calls.item = begun.item;
end
$function$;

comment on function agui_internal.message_places is
    'The places of messages in the log of the lineage of a run up to a seq (null: its end), which is '
    'read backwards. ids and roles: those of the messages. No row for a message without an id.';

create or replace function agui_internal.message_mentions(
    key          uuid,
    run_nos      int[],
    from_seqs    bigint[],
    through_seqs bigint[],
    wanted       jsonb,
    part_nos     int[],
    part_ids     text[]
)
returns setof agui_internal.message_mention
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
-- The planner expects few events, and would compare each with each.
set enable_nestloop = off
set jit = off
as $function$
declare
    chunks constant text[] := agui_internal.event_types('chunk text', 'chunk reasoning', 'chunk tool');
    lists  constant text[] := agui_internal.event_types('start run', 'list messages');
    types  constant text[] := chunks || lists || agui_internal.event_types(
        'start text', 'continue text', 'end text', 'start reasoning', 'continue reasoning', 'end reasoning',
        'start tool', 'continue tool', 'end tool', 'add result', 'show activity', 'patch activity', 'show or patch activity', 'encrypt'
    );
begin
    return query
    with event as materialized (
        select
            batch.first_seq + element.position - 1 as seq,
            batch.run_no,
            element.type,
            element.message_id::text as message_id,
            element.call_id::text as call_id,
            element.parent_id::text as parent_id,
            element.entity_id::text as entity_id,
            case when element.type = any (chunks) then coalesce(element.owner::text, '') end as lane,
            element.told::text as told,
            agui_internal.event_time(batch.recorded_at, element.earlier_us) as at,
            case
                when element.type = 'RUN_STARTED' and json_typeof(element.input) = 'object'
                    then coalesce(agui_internal.listed_messages(element.input -> 'messages', wanted), '{}')
                when element.type = 'MESSAGES_SNAPSHOT' then coalesce(agui_internal.listed_messages(element.messages, wanted), '{}')
            end as listed
        from (
            select stored.*, agui_internal.json_guarded(stored.events) as guarded, span.from_seq, span.through_seq
            from unnest(run_nos, from_seqs, through_seqs) as span (run_no, from_seq, through_seq)
            cross join lateral (
                select *
                from agui.batch as of_run
                where of_run.thread_key = key
                    and of_run.run_no = span.run_no
                    and of_run.first_seq between span.from_seq and span.through_seq
                offset 0  -- one range of the index for each run
            ) as stored
            offset 0  -- so that a batch is guarded once, not once for each function that reads it
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.guarded) as (
                type text,
                "messageId" json,
                "toolCallId" json,
                "parentMessageId" json,
                "entityId" json,
                "subagentRunId" json,
                "timestamp" json,
                input json,
                messages json
            ),
            unnest(batch.earlier_us)
        ) with ordinality as element (
            type, message_id, call_id, parent_id, entity_id, owner, told, input, messages, earlier_us, position
        )
        where element.type = any (types)
            and batch.first_seq + element.position - 1 <= batch.through_seq
    ),
    -- A chunk that names nothing continues the chunk before it.
    named as (
        select
            chunk.seq, chunk.run_no, chunk.type, chunk.lane, chunk.entity_id,
            first_value(chunk.message_id) over stream as message_id,
            first_value(chunk.call_id) over stream as call_id,
            first_value(chunk.parent_id) over stream as parent_id
        from (
            select event.*, count(coalesce(event.call_id, event.message_id)) over (partition by event.run_no, event.lane, event.type order by event.seq) as stream
            from event
            where event.lane is not null
        ) as chunk
        window stream as (partition by chunk.run_no, chunk.lane, chunk.type, chunk.stream order by chunk.seq)
        union all
        select event.seq, event.run_no, event.type, event.lane, event.entity_id, event.message_id, event.call_id, event.parent_id
        from event
        where event.lane is null and event.type <> all (lists)
    ),
    beside as (
        select stored.run_no, stored.input, stored.part_nos, coalesce(start.seq, span.from_seq) as seq, start.told, start.at
        from unnest(run_nos, from_seqs, through_seqs) as span (run_no, from_seq, through_seq)
        -- An input beside the events counts at the first RUN_STARTED, unless that has one, or else
        -- at the first event.
        cross join lateral (
            select
                given.run_no,
                list.part_nos,
                -- The messages may stay in the skeleton.
                case when list.part_nos is null then coalesce(given.input, agui_internal.joined_input(key, given.skeleton, given.sections)::json) end as input
            from agui.run_input as given
            left join lateral (
                select coalesce(range_agg(range.part_nos), '{}') as part_nos
                from jsonb_to_recordset(given.sections) as section (kind text, part_nos int4range[])
                left join lateral unnest(section.part_nos) as range (part_nos) on true
                where section.kind = 'message'
                having count(*) > 0
            ) as list on true
            where given.thread_key = key
                and given.run_no = span.run_no
                and span.from_seq = (select run.first_seq from agui.run as run where run.thread_key = key and run.run_no = span.run_no)
            offset 0
        ) as stored
        left join lateral (
            select event.seq, event.told, event.at, event.listed is not null as has_input
            from event
            where event.run_no = span.run_no and event.type = 'RUN_STARTED'
            order by event.seq
            limit 1
        ) as start on true
        where start.has_input is not true
    )
    select
        told.run_no,
        told.first_seq,
        told.last_seq,
        told.type,
        false,
        agui_internal.json_string_text(told.message_id),
        agui_internal.json_string_text(told.call_id),
        agui_internal.json_string_text(told.parent_id),
        agui_internal.json_string_text(told.entity_id),
        told.lane,
        first_event.told,
        last_event.told,
        first_event.at,
        last_event.at
    from (
        select
            named.run_no, named.type, named.lane, named.message_id, named.call_id, named.parent_id, named.entity_id,
            min(named.seq) as first_seq,
            max(named.seq) as last_seq
        from named
        group by named.run_no, named.type, named.lane, named.message_id, named.call_id, named.parent_id, named.entity_id
    ) as told
    join event as first_event on first_event.seq = told.first_seq
    join event as last_event on last_event.seq = told.last_seq
    union all
    -- A list that has none of the messages says so.
    select event.run_no, event.seq, event.seq, event.type, true, listed.message_id, null, null, null, null, event.told, event.told, event.at, event.at
    from event
    left join lateral unnest(event.listed) as listed (message_id) on true
    where event.listed is not null
    union all
    select beside.run_no, beside.seq, beside.seq, 'RUN_STARTED', true, listed.message_id, null, null, null, null, beside.told, beside.told, beside.at, beside.at
    from beside
    left join lateral unnest(agui_internal.listed_messages(agui_internal.json_guarded(beside.input) -> 'messages', wanted)) as listed (message_id) on true
    where beside.input is not null
    union all
    select beside.run_no, beside.seq, beside.seq, 'RUN_STARTED', true, part.message_id, null, null, null, null, beside.told, beside.told, beside.at, beside.at
    from beside
    left join unnest(message_mentions.part_nos, message_mentions.part_ids) as part (part_no, message_id) on beside.part_nos @> part.part_no
    where beside.input is null;
end
$function$;

comment on function agui_internal.message_mentions is
    'The mentions of messages and tool calls in the events of some runs of a thread, from one seq up '
    'to another, which begin a batch and end anywhere. Of lists of messages, the input beside the '
    'events of a run included, only those with one of the wanted ids, the keys of an object; a list '
    'without any has one row without an id. part_nos and part_ids: the parts of inputs that are such '
    'messages, and their ids.';

create or replace function agui_internal.name_of_call(run agui.run, call_id text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select event.name
        from agui_internal.events_of_calls(array[run]) as event
        where event.ending is null and not event.is_result and event.has_effect and event.call_id = name_of_call.call_id and event.name is not null
        -- A later start renames the call.
        order by event.seq desc
        limit 1
    );
end
$$;

comment on function agui_internal.name_of_call is
    'The name of the function of a tool call that a run began; null: it began no such call. Reads '
    'those batches of the run that may name one.';

create or replace function agui_internal.preorder(parents int[])
returns table (node int, depth int, place int)
language plpgsql
immutable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    n constant int := coalesce(cardinality(parents), 0);
    sizes      int[] := array_fill(1, array[n]);  -- of the subtrees
    depths     int[] := array_fill(1, array[n]);
    next_place int[] := array_fill(0, array[n]);  -- of the next child of a node
    next_root  int := 1;
    parent     int;
begin
    for node_no in reverse n..1 loop
        parent := parents[node_no];
        if parent > 0 then
            sizes[parent] := sizes[parent] + sizes[node_no];
        end if;
    end loop;
    for node_no in 1..n loop
        parent := parents[node_no];
        if parent > 0 then
            place := next_place[parent];
            next_place[parent] := place + sizes[node_no];
            depths[node_no] := depths[parent] + 1;
        else
            place := next_root;
            next_root := place + sizes[node_no];
        end if;
        next_place[node_no] := place + 1;
        node := node_no;
        depth := depths[node_no];
        return next;
    end loop;
end
$$;

comment on function agui_internal.preorder is
    'The nodes 1, 2, 3, … of trees, given the parent of each, which has a smaller number (0: a '
    'root): depth (1: a root), and place in an order in which each node comes before its children, '
    'and those before the next node beside it. Takes time in proportion to the number of nodes.';

create or replace function agui_internal.read_event_span(event json)
returns agui_internal.event_span
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    plain constant json := agui_internal.json_guarded(event);
    number constant text := coalesce((plain -> 'event_count')::text, (plain -> 'eventCount')::text);
    span agui_internal.event_span;
begin
    if number ~ '^[1-9][0-9]{0,14}$' then
        span.event_count := number::bigint;
        span.created_at := agui_internal.json_timestamp(coalesce(plain -> 'created_at', plain -> 'createdAt', plain -> 'timestamp'));
        span.completed_at := agui_internal.json_timestamp(coalesce(plain -> 'completed_at', plain -> 'completedAt'));
        return span;
    end if;
    return null;
end
$$;

comment on function agui_internal.read_event_span is
    'What an event that was joined before it was appended states about its parts: event_count (or '
    'eventCount), their number, and created_at (createdAt, timestamp) and completed_at '
    '(completedAt), the times of the first and the last one. Null for an event without such a '
    'count.';

create or replace function agui_internal.saturated(total numeric)
returns bigint
language sql
immutable
parallel safe
return case when total > 9223372036854775807 then 9223372036854775807 else total::bigint end;

comment on function agui_internal.saturated is
    'A sum as a bigint: the largest one stands for sums beyond it.';

create or replace function agui_internal.tool_of_call(asked agui.projected_interrupt)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select call.tool
        from agui.projected_call as call
        where call.thread_key = asked.thread_key and call.call_id = asked.tool_call_id and call.tool is not null
        order by call.run_no
        limit 1
    );
end
$$;

comment on function agui_internal.tool_of_call is
    'The name of the function that the tool call of a question calls; null: it has no call.';

create or replace function agui_internal.unanswered_calls(run agui.run)
returns text[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce((
        select array_agg(call.id order by call.seq)
        from (
            select event.call_id as id, min(event.seq) as seq, bool_or(event.is_result) as has_result
            from agui_internal.events_of_calls(array[run]) as event
            where event.ending is null and event.call_id is not null and event.has_effect and (event.is_result or event.name is not null)
            group by 1
        ) as call
        where not call.has_result
    ), '{}');
end
$$;

comment on function agui_internal.unanswered_calls is
    'The ids of the tool calls that a run which has ended began, and gave no result, in the order in '
    'which they began. Reads the events of the run.';

-- The one place that says which tool call an event of the log names. A batch is opened once for its
-- events, and few of these are parsed.
create or replace function agui_internal.events_of_calls(runs agui.run[], until bigint default null)
returns setof agui_internal.call_event
language plpgsql
stable
parallel safe
rows 1000
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    call_types constant text := 'TOOL_CALL_';  -- what they begin with
    results    constant text[] := agui_internal.event_types('add result');
    of_calls   constant text[] := results || agui_internal.event_types('start tool', 'continue tool', 'end tool', 'chunk tool');
begin
    return query
    select
        told.thread_key,
        told.run_no,
        told.seq,
        told.at,
        member.type,
        agui_internal.json_string_text(member."toolCallId"::text),
        agui_internal.json_string_text(member."toolCallName"::text),
        member.delta,
        member.content,
        member.error,
        member.type = any (results),
        told.has_effect,
        case when told.is_end then told.event end
    from (
        select
            run.thread_key,
            run.run_no,
            batch.first_seq + element.position - 1 as seq,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
            -- RUN_ERROR is the end of what has an effect.
            run.status <> 'failed' or batch.first_seq + element.position - 1 <= run.end_seq as has_effect,
            batch.first_seq + element.position - 1 is not distinct from run.end_seq as is_end,
            agui_internal.json_guarded(element.value) as event
        from unnest(runs) as run
        cross join lateral (
            select stored.first_seq, stored.recorded_at, stored.earlier_us, stored.events
            from agui.batch as stored
            where stored.thread_key = run.thread_key
                and stored.run_no = run.run_no
                and stored.first_seq between run.first_seq and least(run.last_seq, coalesce(until, 9223372036854775807))
                and (run.end_seq between stored.first_seq and stored.first_seq + stored.n - 1 or agui_internal.mentions_type(stored.events::text, call_types))
            offset 0
        ) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        where (batch.first_seq + element.position - 1 = run.end_seq or agui_internal.mentions_type(element.value::text, call_types))
            and batch.first_seq + element.position - 1 <= coalesce(until, 9223372036854775807)
    ) as told
    cross join lateral json_to_record(told.event) as member (
        type text, "toolCallId" json, "toolCallName" json, delta json, content json, error json
    )
    where told.is_end or member.type = any (of_calls);
end
$$;

comment on function agui_internal.events_of_calls is
    'The events of tool calls of runs, and their ends, up to a seq (null: all of them). Reads the batches of the runs '
    'that may have some.';

create or replace function agui_internal.usage_members()
returns text[]
language sql
immutable
parallel safe
return array[
    'provider', 'model', 'inputTokens', 'outputTokens', 'totalTokens', 'reasoningTokens', 'cachedInputTokens', 'cacheWriteInputTokens'
];

comment on function agui_internal.usage_members is 'The members of an entry of usage that agui.usage counts.';

create or replace function agui_internal.usage_of_run(run agui.run, ending json)
returns setof agui_internal.usage_entry
language plpgsql
stable
parallel safe
rows 2
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
as $$
declare
    is_mapped constant boolean := exists (select from agui_internal.usage_mapping);
begin
    -- A run that was cut off did not end by itself.
    if ending is null or run.cut_off_reason is not null then
        return;
    end if;
    if not agui_internal.reports_one_call(ending) then
        return query select * from agui_internal.usage_of_event(ending);
        if found then
            return;
        end if;
    end if;
    return query
    with reported as materialized (
        select
            batch.first_seq + element.position - 1 as seq,
            guarded.event ->> 'type' = 'CUSTOM' as is_custom,
            guarded.event ->> 'type' <> 'CUSTOM' and agui_internal.reports_one_call(guarded.event) as is_of_call,
            entry.*
        from agui.batch as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
        cross join lateral agui_internal.usage_of_event(guarded.event) as entry
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.end_seq
            -- Names written with escapes have \u00 in them.
            and (is_mapped or strpos(batch.events::text, 'usage') > 0 or strpos(batch.events::text, '\u00') > 0)
            -- What stands behind RUN_ERROR has no effect.
            and batch.first_seq + element.position - 1 <= run.end_seq
            and (
                agui_internal.mentions_type(element.value::text, 'CUSTOM')
                or agui_internal.mentions_type(element.value::text, 'RUN_FINISHED')
                or agui_internal.mentions_type(element.value::text, 'RUN_ERROR')
            )
    ),
    last as (
        select reported.seq, reported.is_custom, reported.is_of_call
        from reported
        order by reported.is_custom, reported.seq desc
        limit 1
    )
    select
        row_number() over (order by reported.seq, reported.place)::int,
        reported.provider, reported.model, reported.input_tokens, reported.output_tokens, reported.total_tokens,
        reported.reasoning_tokens, reported.cached_input_tokens, reported.cache_write_input_tokens
    from reported
    join last on reported.seq = last.seq or reported.is_of_call and last.is_of_call;
end
$$;

comment on function agui_internal.usage_of_run is
    'The tokens that a run used; ending is its end (agui_internal.end_of_run, guarded; null: it has none). Each end and '
    'each CUSTOM event reports those of the whole run so far, so the last one counts, of the ends if any of them '
    'reports. Ends that report one call of the model add up. Usually reads no more than the end.';

create or replace function agui_internal.reports_one_call(ending json)
returns boolean
language sql
immutable
parallel safe
return json_typeof(ending #> '{metadata,tanstack}') is not distinct from 'object' or ending #> '{usage,promptTokens}' is not null;

comment on function agui_internal.reports_one_call is
    'Whether an end of a run (guarded) reports one call of the model, not the run so far: TanStack ends each call. Inlined.';

create or replace function agui_internal.usage_of_event(event json)
returns setof agui_internal.usage_entry
language plpgsql
stable
parallel safe
rows 2
set search_path = pg_catalog, pg_temp
as $$
declare
    event_type constant text := event ->> 'type';
    event_name constant text := case
        when event_type in ('RUN_FINISHED', 'RUN_ERROR') then ''
        when event_type = 'CUSTOM' then nullif(event ->> 'name', '')
    end;
    own_path constant text[] := case event_name when '' then '{usage}' when 'usage' then '{value}' end;
    -- TanStack names it beside the usage.
    model constant text := agui_internal.json_string_text(coalesce(event -> 'model', event #> '{metadata,tanstack,model}')::text);
    -- Beside it stands, too, what it has not moved into the list, such as the tokens written to a cache.
    details constant json := event #> '{metadata,tanstack,usage,promptTokensDetails}';
    usage json;
    place record;
begin
    for place in
        select known.path, known.names
        from (
            select mapping.path, mapping.names, mapping.set_at
            from agui_internal.usage_mapping as mapping
            where mapping.custom = event_name
            union all
            select own_path, '{}', null
            where own_path is not null
        ) as known
        order by known.path is distinct from own_path, known.set_at desc nulls last
    loop
        usage := event #> place.path;
        if details is not null and place.path = '{usage}' and json_typeof(usage -> 0) = 'object' and usage -> 1 is null then
            usage := json_build_array(agui_internal.json_member_set((usage -> 0)::text, 'promptTokensDetails', details::text)::json);
        end if;
        return query select * from agui_internal.usage_entries(usage, place.names, model);
        exit when found;
    end loop;
end
$$;

comment on function agui_internal.usage_of_event is
    'The usage that an end of a run or a CUSTOM event (guarded JSON) reports: in its own place, else where '
    'agui.map_usage says, the newest mapping first. No rows: it reports none.';

-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.usage_entries(usage json, names jsonb, model text)
returns setof agui_internal.usage_entry
language sql
immutable
parallel safe
rows 2
begin atomic
    select
        entry.place, entry.provider, coalesce(entry.model, usage_entries.model), entry.input_tokens, entry.output_tokens,
        coalesce(entry.total_tokens, entry.input_tokens + entry.output_tokens),
        entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    from (
        select
            item.position::int as place,
            nullif(agui_internal.json_string_text(member.provider::text), '') as provider,
            nullif(agui_internal.json_string_text(member.model::text), '') as model,
            agui_internal.json_count(member.input_tokens) as input_tokens,
            agui_internal.json_count(member.output_tokens) as output_tokens,
            agui_internal.json_count(member.total_tokens) as total_tokens,
            agui_internal.json_count(member.reasoning_tokens) as reasoning_tokens,
            agui_internal.json_count(member.cached_input_tokens) as cached_input_tokens,
            agui_internal.json_count(member.cache_write_input_tokens) as cache_write_input_tokens
        from json_array_elements(case json_typeof(usage) when 'array' then usage when 'object' then json_build_array(usage) end)
            with ordinality as item (value, position)
        cross join lateral (
            -- Where agui.map_usage says, and as AG-UI, TanStack and Agent Framework name it.
            select
                coalesce(item.value #> string_to_array(names ->> 'provider', '.'), item.value -> 'provider') as provider,
                coalesce(item.value #> string_to_array(names ->> 'model', '.'), item.value -> 'model') as model,
                coalesce(
                    item.value #> string_to_array(names ->> 'inputTokens', '.'), item.value -> 'inputTokens',
                    item.value -> 'promptTokens', item.value -> 'input_token_count'
                ) as input_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'outputTokens', '.'), item.value -> 'outputTokens',
                    item.value -> 'completionTokens', item.value -> 'output_token_count'
                ) as output_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'totalTokens', '.'), item.value -> 'totalTokens',
                    item.value -> 'total_token_count'
                ) as total_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'reasoningTokens', '.'), item.value -> 'reasoningTokens',
                    item.value -> 'completionTokensDetails' -> 'reasoningTokens', item.value -> 'reasoning_output_token_count'
                ) as reasoning_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'cachedInputTokens', '.'), item.value -> 'cachedInputTokens',
                    item.value -> 'promptTokensDetails' -> 'cachedTokens', item.value -> 'cache_read_input_token_count'
                ) as cached_input_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'cacheWriteInputTokens', '.'), item.value -> 'cacheWriteInputTokens',
                    item.value -> 'promptTokensDetails' -> 'cacheWriteTokens', item.value -> 'cache_creation_input_token_count'
                ) as cache_write_input_tokens
            offset 0
        ) as member
        offset 0
    ) as entry
    where num_nonnulls(
        entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    ) > 0;
end;

comment on function agui_internal.usage_entries is
    'The entries of a usage (guarded, a JSON object or array; none of another value) that report a count, with the '
    'members named as names says (agui.map_usage), else as AG-UI and frameworks do. model is that of entries that '
    'name none. A count that is no '
    'whole number from 0 to 2^53 - 1 is left out. Where an entry has no totalTokens, the sum of '
    'inputTokens and outputTokens stands for it.';

create or replace function agui_internal.with_joined_text(event json, in_content boolean, piece text)
returns json
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.json_unguard(
        '{' || string_agg(
            to_json(member.key)::text || ':' || case
                when member.key = case when in_content then 'content' else 'delta' end then '"' || piece || '"'
                else member.value::text
            end,
            ','
            order by member.position
        ) || '}'
    )::json
    from json_each(agui_internal.json_guarded(event)) with ordinality as member (key, value, position)
$$;

comment on function agui_internal.with_joined_text is
    'An event with another delta (or, if in_content, another content): the inside of a string of '
    'guarded JSON text.';
