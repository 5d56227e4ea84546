create or replace function agui_internal.repair_steps(
    in events json,
    out "position" int,
    out action text,
    out type text,
    out part int,
    out kind int,
    out id text,
    out opening text,
    out closing text,
    out name text,
    out owner text,
    out ids text,
    out interrupts text
)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with element as materialized (
        select
            element.position::int as position,
            coalesce(element.type, '') as type,
            lag(element.type) over (order by element.position) in ('RUN_FINISHED', 'RUN_ERROR') as is_behind_end,
            element.body,
            -- A value that is not a string counts as absent.
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
            role.part,
            role.part_no as no,
            role.opens,
            role.closes,
            role.named_by,
            case role.does when 'continue' then 'piece' else role.does end as action,
            case role.named_by
                when 'messageId' then element.message_id
                when 'toolCallId' then element.tool_call_id
                when 'stepName' then agui_internal.json_string_member(element.body, 'stepName')
                when 'subagentRunId' then element.owner
                else '""'
            end as id
        from element
        join agui_internal.event_roles() as role on role.type = element.type and role.does <> 'chunk'
    ),
    step as (
        select
            element.position,
            0 as place,
            'life' as action,
            element.type,
            null::int as kind,
            null as id,
            null as taken_by,
            null as opening,
            null as closing,
            null as name,
            null as owner,
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
        select element.position, 1, 'replace', null, null, null, null, null, null, null, null, null, null
        from element
        where element.type = any (agui_internal.event_types('list messages', 'show activity', 'show or patch activity'))
        union all
        select
            part.position, 1, 'need', null, part.no, agui_internal.json_string_member(part.body, 'parentSubagentRunId'), null,
            null, null, null, null, null, null
        from part
        where part.part = 'subagent' and part.action = 'start' and part.id is not null
        union all
        select
            part.position,
            2,
            part.action,
            null,
            part.no,
            part.id,
            case when part.part = 'step' then part.owner end,
            case when part.action = 'start' then concat(
                '{"type":"', part.opens, '"',
                case when part.named_by is not null then ',"' || part.named_by || '":' || part.id end,
                case part.part
                    when 'text' then ',"role":' || agui_internal.json_string_member(part.body, 'role')
                    when 'reasoning' then ',"role":"reasoning"'
                end,
                case when part.part in ('text', 'subagent') then ',"name":' || agui_internal.json_string_member(part.body, 'name') end
            ) end,
            case when part.action = 'start' then concat(
                '{"type":"', part.closes, '"',
                case when part.named_by is not null then ',"' || part.named_by || '":' || part.id end,
                case when part.part = 'step' then ',"subagentRunId":' || part.owner end
            ) end,
            case when part.action = 'start' and part.part = 'tool' then agui_internal.json_string_member(part.body, 'toolCallName') end,
            part.owner,
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
        step.kind,
        agui_internal.json_string_token(step.id),
        step.opening,
        step.closing,
        step.name,
        step.owner,
        step.ids,
        step.interrupts
    from step
    where step.kind is null or step.id is not null
    order by step.position, step.place
$function$;

comment on function agui_internal.repair_steps(json) is
    'The steps for agui_internal.repaired_events, in order, from events (guarded JSON): the life '
    'cycle of runs (life); what opens, continues and closes something (start, piece, end; need: a '
    'subagent that another one names as its parent); and what may remove messages (replace). part '
    'numbers what is opened.';

revoke execute on function agui_internal.repair_steps(json) from public;
