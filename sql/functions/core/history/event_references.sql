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
        join agui.input as beside
            on beside.thread_key = leaf.thread_key and beside.run_no = place.run_no
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

comment on function agui_internal.event_references(agui.run, bigint, text[]) is
    'The references to messages and tool calls in the lineage of a run, up to at_seq (null: all of '
    'it), in events of the given types. Reads the whole log of the lineage.';

revoke execute on function agui_internal.event_references(agui.run, bigint, text[]) from public;
