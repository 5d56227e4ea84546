create or replace function agui_internal.repair_subject(
    in fold agui_internal.fold,
    in kind int,
    in id text,
    out is_there boolean,
    out name text,
    out owner text
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    place int;
begin
    if kind = 2 then
        select message.position, call.name into place, repair_subject.name
        from unnest(fold.bodies) with ordinality as message (body, position)
        cross join lateral (select agui_internal.json_guard(message.body)::json -> 'toolCalls' as list) as calls
        cross join lateral json_array_elements(case when json_typeof(calls.list) = 'array' then calls.list end)
            with ordinality as element (value, position)
        cross join lateral (
            select
                agui_internal.json_string_token(agui_internal.json_string_member(element.value, 'id')) as id,
                agui_internal.json_string_member(element.value -> 'function', 'name') as name
        ) as call
        where strpos(message.body, 'toolCalls') > 0 and call.id = repair_subject.id
        order by message.position, element.position
        limit 1;
        is_there := name is not null;
    else
        place := array_position(fold.message_ids, agui_internal.json_string_text(id));
        is_there := place is not null;
    end if;
    owner := agui_internal.json_string_member(agui_internal.json_guard(fold.bodies[place])::json, 'subagentRunId');
end
$function$;

comment on function agui_internal.repair_subject(agui_internal.fold, int, text) is
    'Whether a fold has the message or call (kind 2) with an id (a guarded JSON string), the name '
    'of the call, and the subagent that owns it (guarded JSON strings).';

revoke execute on function agui_internal.repair_subject(agui_internal.fold, int, text) from public;
