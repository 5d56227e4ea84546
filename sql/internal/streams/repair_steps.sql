create or replace function agui_internal.repair_steps(
    in events json,
    out "position" int,
    out action text,
    out type text,
    out part int,
    out subject int,
    out kind int,
    out opening text,
    out closing text,
    out name text,
    out owner text,
    out is_reasoning boolean,
    out ids text,
    out interrupts text
)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with kind (no, opens, continues, closes, also_closes, named_by) as (
        values
            (1, 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', null, 'messageId'),
            (2, 'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', null, 'toolCallId'),
            (3, 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END', null, 'messageId'),
            (4, 'REASONING_START', null, 'REASONING_END', null, 'messageId'),
            (5, 'THINKING_TEXT_MESSAGE_START', 'THINKING_TEXT_MESSAGE_CONTENT', 'THINKING_TEXT_MESSAGE_END', null, null),
            (6, 'THINKING_START', null, 'THINKING_END', null, null),
            (7, 'STEP_STARTED', null, 'STEP_FINISHED', null, 'stepName'),
            (8, 'SUBAGENT_STARTED', null, 'SUBAGENT_FINISHED', 'SUBAGENT_ERROR', 'subagentRunId')
    ),
    element as materialized (
        select
            element.position::int as position,
            coalesce(element.type, '') as type,
            lag(element.type) over (order by element.position) in ('RUN_FINISHED', 'RUN_ERROR') as is_behind_end,
            element.body,
            -- What is no string counts as absent.
            case when left(element.message_id::text, 1) = '"' then element.message_id::text end as message_id,
            case when left(element.tool_call_id::text, 1) = '"' then element.tool_call_id::text end as tool_call_id,
            case when left(element.owner::text, 1) = '"' then element.owner::text end as owner
        from rows from (
            json_to_recordset(events) as (type text, "messageId" json, "toolCallId" json, "subagentRunId" json),
            json_array_elements(events)
        ) with ordinality as element (type, message_id, tool_call_id, owner, body, position)
    ),
    part as (
        select
            element.*,
            kind.*,
            case element.type when kind.opens then 'start' when kind.continues then 'piece' else 'end' end as action,
            case kind.named_by
                when 'messageId' then element.message_id
                when 'toolCallId' then element.tool_call_id
                when 'stepName' then agui_internal.json_string_member(element.body, 'stepName')
                when 'subagentRunId' then element.owner
                else '""'
            end as id
        from element
        join kind on element.type in (kind.opens, kind.continues, kind.closes, kind.also_closes)
    ),
    -- Lists of messages.
    list as (
        select
            element.position,
            case element.type when 'RUN_STARTED' then 'made' else 'named' end as action,
            case element.type when 'RUN_STARTED' then element.body -> 'input' -> 'messages' else element.body -> 'messages' end as list
        from element
        where element.type = 'RUN_STARTED'
        or element.type = 'MESSAGES_SNAPSHOT'
            and json_typeof(element.body -> 'messages') = 'array'
            and coalesce(json_typeof(element.body -> 'metadata'), 'null') in ('null', 'object')
    ),
    listed as (
        select
            list.position,
            list.action,
            message.value as message,
            message.position as message_no,
            message.value ->> 'role' = 'reasoning' as is_reasoning,
            agui_internal.json_string_member(message.value, 'subagentRunId') as owner
        from list
        cross join lateral json_array_elements(case when json_typeof(list.list) = 'array' then list.list end)
            with ordinality as message (value, position)
        where json_typeof(message.value) = 'object'
    ),
    step as (
        select
            element.position,
            0 as place,
            null::bigint[] as item_no,
            'life' as action,
            element.type,
            null::int as kind,
            null as id,
            null as taken_by,
            null as subject_kind,
            null as subject_id,
            null as opening,
            null as closing,
            null as name,
            null as owner,
            null::boolean as is_reasoning,
            case when element.type in ('RUN_STARTED', 'RUN_FINISHED') then concat(
                ',"threadId":' || agui_internal.json_string_member(element.body, 'threadId'),
                ',"runId":' || agui_internal.json_string_member(element.body, 'runId')
            ) end as ids,
            case
                when element.type <> 'RUN_FINISHED' then null
                when (element.body -> 'outcome' ->> 'type' = 'interrupt') is not true then ''
                when json_typeof(element.body -> 'outcome' -> 'interrupts') = 'array' then (element.body -> 'outcome' -> 'interrupts')::text
            end as interrupts
        from element
        where element.type in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') or element.is_behind_end or element.position = 1
        union all
        select
            list.position, 1, null, 'snapshot', null, null, null, null, null, null, null, null, null, null,
            exists (select from listed where listed.position = list.position and listed.is_reasoning),
            null, null
        from list
        where list.action = 'named'
        union all
        select
            listed.position, 2, array[listed.message_no, 0], listed.action, null, null, null, null,
            'message', agui_internal.json_string_member(listed.message, 'id'), null, null, null, listed.owner, listed.is_reasoning, null, null
        from listed
        union all
        select
            listed.position, 2, array[listed.message_no, call.position], listed.action, null, null, null, null,
            'call', agui_internal.json_string_member(call.value, 'id'), null, null,
            agui_internal.json_string_member(call.value -> 'function', 'name'), listed.owner, false, null, null
        from listed
        cross join lateral (select listed.message -> 'toolCalls' as list) as calls
        cross join lateral json_array_elements(case when json_typeof(calls.list) = 'array' then calls.list end)
            with ordinality as call (value, position)
        where json_typeof(call.value) = 'object'
        union all
        select
            element.position, 2, null, 'made', null, null, null, null, 'message',
            case element.type
                when 'TOOL_CALL_RESULT' then element.message_id
                else coalesce(nullif(agui_internal.json_string_member(element.body, 'parentMessageId'), '""'), element.tool_call_id)
            end,
            null, null, null, element.owner, false, null, null
        from element
        where element.type in ('TOOL_CALL_RESULT', 'TOOL_CALL_START')
        union all
        select
            part.position, 3, null, 'need', null, part.no, agui_internal.json_string_member(part.body, 'parentSubagentRunId'), null,
            null, null, null, null, null, null, null, null, null
        from part
        where part.type = 'SUBAGENT_STARTED' and part.id is not null
        union all
        select
            part.position,
            4,
            null,
            part.action,
            null,
            part.no,
            part.id,
            case when part.no = 7 then part.owner end,
            case when part.no in (1, 3) then 'message' when part.no = 2 then 'call' end,
            case when part.no in (1, 2, 3) then part.id end,
            case when part.action = 'start' then concat(
                '{"type":"', part.opens, '"',
                case when part.named_by is not null then ',"' || part.named_by || '":' || part.id end,
                case part.no
                    when 1 then ',"role":' || agui_internal.json_string_member(part.body, 'role')
                    when 3 then ',"role":"reasoning"'
                end,
                case when part.no in (1, 8) then ',"name":' || agui_internal.json_string_member(part.body, 'name') end
            ) end,
            case when part.action = 'start' then concat(
                '{"type":"', part.closes, '"',
                case when part.named_by is not null then ',"' || part.named_by || '":' || part.id end,
                case when part.no = 7 then ',"subagentRunId":' || part.owner end
            ) end,
            case when part.action = 'start' and part.no = 2 then agui_internal.json_string_member(part.body, 'toolCallName') end,
            part.owner,
            part.no = 3,
            null,
            null
        from part
    )
    select
        step.position,
        step.action,
        step.type,
        case when step.kind is not null then
            dense_rank() over (
                partition by step.kind is not null
                order by step.kind, agui_internal.json_string_token(step.id) collate "C", agui_internal.json_string_token(step.taken_by) collate "C"
            )::int
        end,
        case when step.subject_kind is not null then
            dense_rank() over (
                partition by step.subject_kind is not null
                order by step.subject_kind, agui_internal.json_string_token(step.subject_id) collate "C"
            )::int
        end,
        step.kind,
        step.opening,
        step.closing,
        step.name,
        step.owner,
        step.is_reasoning,
        step.ids,
        step.interrupts
    from step
    where (step.kind is null or step.id is not null) and (step.subject_kind is null or step.subject_id is not null)
    order by step.position, step.place, step.item_no
$function$;

comment on function agui_internal.repair_steps(json) is
    'What agui_internal.repaired_events looks at among events (guarded JSON), in order: the life of runs (life), what MESSAGES_SNAPSHOT '
    'and other events say of messages and calls (snapshot, named, made), and what is opened and closed (start, piece, end; need: a '
    'subagent that another one names as its parent). part and subject number what that is about.';

revoke execute on function agui_internal.repair_steps(json) from public;
