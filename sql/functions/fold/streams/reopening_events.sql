create or replace function agui_internal.reopening_events(run agui.run, until bigint, fold agui_internal.fold)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        with part as materialized (
            select
                part.opens,
                part.named_by,
                part.name,
                part.opened_at,
                part.event,
                agui_internal.json_string_text(to_json(part.name)::text) as id,
                part.opens = any (agui_internal.event_types('start text', 'start reasoning', 'start tool')) as is_content,
                part.opens = any (agui_internal.event_types('start tool')) as is_call
            from (
                -- What is open of thinking opens as the reasoning that it means.
                select
                    coalesce(meant.type, open.opens) as opens,
                    case when meant.type is null then open.named_by else 'messageId' end as named_by,
                    case when meant.type is null then open.name else run.run_id || '-thinking-' || open.opened_at end as name,
                    open.opened_at,
                    case when meant.type is null then open.event else agui_internal.json_guarded(
                        agui_internal.event_of_reasoning(
                            agui_internal.json_unguard(open.event::text)::json, meant.type,
                            to_json(run.run_id || '-thinking-' || open.opened_at)::text
                        )::json
                    ) end as event
                from agui_internal.open_parts(run, until) as open
                cross join lateral (
                    select case
                        when open.opens = any (agui_internal.event_types('start thinking')) then (agui_internal.event_types('start reasoning'))[1]
                        when open.opens = any (agui_internal.event_types('start thinking span')) then (agui_internal.event_types('start span'))[1]
                    end as type
                ) as meant
            ) as part
        ),
        lane as (
            select
                agui_internal.json_string_text((lane.value -> 'id')::text) as id,
                lane.value ->> 'kind' = 'tool' as is_call
            from json_array_elements(agui_internal.json_guard(fold.lanes)::json) as lane (value)
        ),
        call as (
            select distinct on (id) agui_internal.json_string_text(call.call_id) as id, call.name
            from agui_internal.fold_calls(fold) as call
            where exists (select from part where part.is_call) or exists (select from lane where lane.is_call)
            order by id, call.message_position, call.position
        ),
        opening as (
            select
                part.opened_at,
                case
                    when part.is_call then call.id is not null
                    when part.is_content then array_position(fold.message_ids, part.id) is not null
                    else true
                end as is_known,
                -- The start of an existing message or call changes nothing if it has no metadata
                -- and the same name.
                agui_internal.json_unguard(case
                    when part.is_content then '{' || concat_ws(
                        ',',
                        '"type":"' || part.opens || '"',
                        '"' || part.named_by || '":' || to_json(part.name),
                        case
                            when part.is_call then '"toolCallName":' || coalesce(call.name, (part.event -> 'toolCallName')::text, '""')
                            else '"role":' || (part.event -> 'role')::text
                        end,
                        '"subagentRunId":' || nullif((part.event -> 'subagentRunId')::text, 'null')
                    ) || '}'
                    else part.event::text
                end) as event
            from part
            left join call on part.is_call and call.id = part.id
        )
        select concat_ws(',', string_agg(opening.event, ',' order by opening.opened_at), agui_internal.compact_lanes(fold))
        from opening
        having bool_and(opening.is_known) is not false  -- null: no part is open
            and not exists (
                select from lane
                where lane.is_call and not exists (select from call where call.id = lane.id)
            )
    );
end
$function$;

comment on function agui_internal.reopening_events(agui.run, bigint, agui_internal.fold) is
    'The events (JSON texts, joined by commas) that reopen what a run has open at a seq, for a '
    'reader who has the fold of its lineage at that point; empty: nothing is open. Null if a '
    'message or tool call is open that was removed, because its start would create it.';

revoke execute on function agui_internal.reopening_events(agui.run, bigint, agui_internal.fold) from public;
