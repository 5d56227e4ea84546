create or replace function agui_internal.event_of_reasoning(event json, type text, id text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with named as (
        select agui_internal.json_member_set(
            agui_internal.json_member_set(agui_internal.json_guard(event::text), 'type', to_json(type)::text), 'messageId', id
        ) as event
    )
    select agui_internal.json_unguard(case
        when type = any (agui_internal.event_types('start reasoning')) then agui_internal.json_member_set(named.event, 'role', '"reasoning"')
        else named.event
    end)
    from named
$function$;

comment on function agui_internal.event_of_reasoning(json, text, text) is
    'An event of thinking as one of reasoning, with the type and the id that '
    'agui_internal.thinking_as_reasoning gives it.';

revoke execute on function agui_internal.event_of_reasoning(json, text, text) from public;
