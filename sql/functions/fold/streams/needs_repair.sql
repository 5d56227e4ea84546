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
        join agui_internal.event_roles() as role on role.type = element.type
        where role.does in ('start', 'end')
        group by
            element.run,
            role.part,
            agui_internal.json_string_token(case role.named_by
                when 'toolCallId' then element.tool_call_id
                when 'stepName' then element.step_name
                when 'subagentRunId' then element.owner
                when 'messageId' then element.message_id
            end::text),
            case when role.part = 'step' then agui_internal.json_string_token(element.owner::text) end
        having max(element.position) filter (where role.does = 'start') > coalesce(
                max(element.position) filter (where role.does = 'end'), 0
            )
            and element.run <= (
                select greatest(max(life.run) - 1, max(life.run) filter (where life.type = 'RUN_FINISHED'))
                from element as life
            )
    )
    -- A subagent whose parent belongs to another run.
    or exists (select from element where element.type = any (agui_internal.event_types('start subagent')) and element.run > 1)
        and strpos(events::text, 'parentSubagentRunId') > 0
$function$;

comment on function agui_internal.needs_repair(json) is
    'Whether agui_internal.repaired_events may change events (guarded JSON). Fast; it may report '
    'true for events that need no repair, never false for events that do.';

revoke execute on function agui_internal.needs_repair(json) from public;
