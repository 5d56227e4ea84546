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

comment on function agui_internal.message_mentions(uuid, int[], bigint[], bigint[], jsonb, int[], text[]) is
    'The mentions of messages and tool calls in the events of some runs of a thread, from one seq up '
    'to another, which begin a batch and end anywhere. Of lists of messages, the input beside the '
    'events of a run included, only those with one of the wanted ids, the keys of an object; a list '
    'without any has one row without an id. part_nos and part_ids: the parts of inputs that are such '
    'messages, and their ids.';

revoke execute on function agui_internal.message_mentions(uuid, int[], bigint[], bigint[], jsonb, int[], text[]) from public;
