create or replace function agui_internal.compact_lanes(fold agui_internal.fold)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if fold.lanes is null then
        return null;
    end if;
    return (
        with lane as (
            select
                lane.value ->> 'kind' as kind,
                agui_internal.json_string_token((lane.value -> 'id')::text) as id,
                nullif((lane.value -> 'lane')::text, 'null') as owner,
                lane.position
            from json_array_elements(agui_internal.json_guard(fold.lanes)::json) with ordinality as lane (value, position)
        ),
        call as (
            select distinct on (id)
                agui_internal.json_string_token((call.value -> 'id')::text) as id,
                coalesce((call.value #> '{function,name}')::text, '""') as name
            from unnest(fold.bodies) with ordinality as message (body, position)
            cross join lateral (select agui_internal.json_guard(message.body)::json -> 'toolCalls' as list) as calls
            cross join lateral json_array_elements(case when json_typeof(calls.list) = 'array' then calls.list end)
                with ordinality as call (value, position)
            where strpos(message.body, 'toolCalls') > 0
            and exists (select from lane where lane.kind = 'tool')
            and json_typeof(call.value) = 'object'
            order by id, message.position, call.position
        )
        select agui_internal.json_unguard(string_agg(
            '{' || concat_ws(
                ',',
                concat('"type":"', chunk.type, '","', chunk.named_by, '":', lane.id),
                '"toolCallName":' || call.name,
                '"subagentRunId":' || lane.owner
            ) || '}',
            ','
            order by lane.position
        ))
        from lane
        join agui_internal.event_roles() as chunk on chunk.part = lane.kind and chunk.type = chunk.chunks
        left join call on lane.kind = 'tool' and call.id = lane.id
        where lane.kind <> 'tool' or call.id is not null
    );
end
$function$;

comment on function agui_internal.compact_lanes(agui_internal.fold) is
    'Chunks (JSON texts, joined by commas) that reopen what is open in a fold and add nothing; '
    'null if nothing is open. A tool call that was removed stays closed.';

revoke execute on function agui_internal.compact_lanes(agui_internal.fold) from public;
