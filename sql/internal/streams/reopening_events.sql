create or replace function agui_internal.reopening_events(run agui.run, until bigint, fold agui_internal.fold)
returns agui_internal.reopening
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    opened agui_internal.reopening;
begin
    -- The start of a message or call that is there changes nothing, as long as it says nothing of
    -- its metadata and calls it what it is called.
    with part as materialized (
        select
            part.*,
            agui_internal.json_string_text(to_json(part.name)::text) as id,
            part.opens in ('TEXT_MESSAGE_START', 'REASONING_MESSAGE_START', 'TOOL_CALL_START') as is_content
        from agui_internal.open_parts(run, until) as part
    ),
    call as (
        select distinct on (id)
            agui_internal.json_string_text(call.call_id) as id,
            call.name
        from agui_internal.fold_calls(fold) as call
        where exists (select from part where part.opens = 'TOOL_CALL_START')
        order by id, call.message_position, call.position
    ),
    opening as (
        select
            part.opened_at,
            not part.is_content
                or part.opens = 'TOOL_CALL_START' and call.id is not null
                or part.opens <> 'TOOL_CALL_START' and part.id = any (fold.message_ids) as is_known,
            agui_internal.json_unguard(case
                when part.is_content then '{' || concat_ws(
                    ',',
                    '"type":"' || part.opens || '"',
                    '"' || part.named_by || '":' || to_json(part.name),
                    case when part.opens = 'TOOL_CALL_START' then '"toolCallName":' || coalesce(call.name, (part.event -> 'toolCallName')::text, '""')
                        else '"role":' || (part.event -> 'role')::text end,
                    '"subagentRunId":' || nullif((part.event -> 'subagentRunId')::text, 'null')
                ) || '}'
                else part.event::text
            end) as event
        from part
        left join call on part.opens = 'TOOL_CALL_START' and call.id = part.id
    )
    select
        string_agg(opening.event, ',' order by opening.opened_at) filter (where not opening.is_known),
        string_agg(opening.event, ',' order by opening.opened_at) filter (where opening.is_known)
    into opened
    from opening;
    opened.known := nullif(concat_ws(',', opened.known, agui_internal.compact_lanes(fold)), '');
    return opened;
end
$function$;

comment on function agui_internal.reopening_events(agui.run, bigint, agui_internal.fold) is
    'The events that open again what a run has open at a seq, given what its lineage means there.';

revoke execute on function agui_internal.reopening_events(agui.run, bigint, agui_internal.fold) from public;
