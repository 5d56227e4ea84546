create or replace function agui_internal.needs_repair(events json)
returns boolean
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with element as materialized (
        select
            element.*,
            coalesce(lag(element.type) over in_order, '') as before,
            count(*) filter (where element.type = 'RUN_STARTED') over in_order as run
        from rows from (
            json_to_recordset(events) as (type text, "messageId" json, "toolCallId" json, "stepName" json, "subagentRunId" json)
        ) with ordinality as element (type, message_id, tool_call_id, step_name, owner, position)
        window in_order as (order by element.position)
    )
    select exists (
        -- A beginning within a run, or any other event after an end.
        select from element
        where element.type = 'RUN_STARTED' and element.position > 1 and element.before not in ('RUN_FINISHED', 'RUN_ERROR')
        or element.type is distinct from 'RUN_STARTED' and element.before in ('RUN_FINISHED', 'RUN_ERROR')
            and not (element.before = 'RUN_FINISHED' and element.type = 'RUN_ERROR')
    )
    or exists (
        -- What a run leaves open when it ends or another run follows.
        select from element
        where element.type in (
            'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'TOOL_CALL_START', 'TOOL_CALL_END',
            'REASONING_MESSAGE_START', 'REASONING_MESSAGE_END', 'REASONING_START', 'REASONING_END',
            'THINKING_TEXT_MESSAGE_START', 'THINKING_TEXT_MESSAGE_END', 'THINKING_START', 'THINKING_END',
            'STEP_STARTED', 'STEP_FINISHED', 'SUBAGENT_STARTED', 'SUBAGENT_FINISHED', 'SUBAGENT_ERROR'
        )
        group by
            element.run,
            regexp_replace(element.type, '_(START|END|STARTED|FINISHED|ERROR)$', ''),
            agui_internal.json_string_token(case
                when element.type like 'TOOL%' then element.tool_call_id
                when element.type like 'STEP%' then element.step_name
                when element.type like 'SUBAGENT%' then element.owner
                when element.type not like 'THINKING%' then element.message_id
            end::text),
            case when element.type like 'STEP%' then agui_internal.json_string_token(element.owner::text) end
        having max(element.position) filter (where element.type like '%\_START%') > coalesce(
                max(element.position) filter (where element.type not like '%\_START%'), 0
            )
            and element.run <= (
                select greatest(max(life.run) - 1, max(life.run) filter (where life.type = 'RUN_FINISHED'))
                from element as life
            )
    )
    -- A subagent whose parent belongs to another run.
    or exists (select from element where element.type = 'SUBAGENT_STARTED' and element.run > 1)
        and strpos(events::text, 'parentSubagentRunId') > 0
$function$;

comment on function agui_internal.needs_repair(json) is
    'Whether agui_internal.repaired_events may change events (guarded JSON). Fast; it may report '
    'true for events that need no repair, never false for events that do.';

revoke execute on function agui_internal.needs_repair(json) from public;
