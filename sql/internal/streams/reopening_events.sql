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
    with part as materialized (
        select
            part.*,
            agui_internal.json_string_text(to_json(part.name)::text) as id,
            part.opens in ('TEXT_MESSAGE_START', 'REASONING_MESSAGE_START', 'TOOL_CALL_START') as is_content,
            part.opens = 'TOOL_CALL_START' as is_call,
            nullif((part.event -> 'subagentRunId')::text, 'null') as subagent
        from agui_internal.open_parts(run, until) as part
    ),
    lane as (
        select
            agui_internal.json_string_text((lane.value -> 'id')::text) as id,
            lane.value ->> 'kind' = 'tool' as is_call,
            nullif((lane.value -> 'lane')::text, 'null') as subagent
        from json_array_elements(agui_internal.json_guard(fold.lanes)::json) as lane (value)
    ),
    -- Where messages and calls that are open stand.
    call as (
        select distinct on (id)
            agui_internal.json_string_text(call.call_id) as id,
            call.name,
            call.message_position as position
        from agui_internal.fold_calls(fold) as call
        where exists (select from part where part.is_call) or exists (select from lane where lane.is_call)
        order by id, call.message_position, call.position
    ),
    place as (
        select
            open.subagent,
            agui_internal.json_guarded(fold.bodies[
                case when open.is_call then call.position else array_position(fold.message_ids, open.id) end
            ]::json) as message
        from (
            select part.id, part.is_call, part.subagent from part where part.is_content
            union all
            select lane.id, lane.is_call, lane.subagent from lane
        ) as open
        left join call on open.is_call and call.id = open.id
        where open.subagent is not null
    ),
    opening as (
        select
            part.opened_at,
            case
                when part.is_call then call.id is not null
                when part.is_content then part.id = any (fold.message_ids)
                else true
            end as is_known,
            -- The start of a message or call that is there changes nothing, as long as it says
            -- nothing of its metadata and calls it what it is called.
            agui_internal.json_unguard(case
                when part.is_content then '{' || concat_ws(
                    ',',
                    '"type":"' || part.opens || '"',
                    '"' || part.named_by || '":' || to_json(part.name),
                    case
                        when part.is_call then '"toolCallName":' || coalesce(call.name, (part.event -> 'toolCallName')::text, '""')
                        else '"role":' || (part.event -> 'role')::text
                    end,
                    '"subagentRunId":' || part.subagent
                ) || '}'
                else part.event::text
            end) as event
        from part
        left join call on part.is_call and call.id = part.id
    )
    select
        string_agg(opening.event, ',' order by opening.opened_at) filter (where not opening.is_known),
        string_agg(opening.event, ',' order by opening.opened_at) filter (where opening.is_known),
        exists (
            select from place
            where json_typeof(place.message) = 'object'
                and agui_internal.json_string_text(place.subagent)
                    is distinct from agui_internal.json_string_text((place.message -> 'subagentRunId')::text)
        )
    into opened
    from opening;
    opened.known := nullif(concat_ws(',', opened.known, agui_internal.compact_lanes(fold)), '');
    return opened;
end
$function$;

comment on function agui_internal.reopening_events(agui.run, bigint, agui_internal.fold) is
    'The events that open again what a run has open at a seq, given what its lineage means there.';

revoke execute on function agui_internal.reopening_events(agui.run, bigint, agui_internal.fold) from public;
