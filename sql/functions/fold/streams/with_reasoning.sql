-- Events that are given have no seq: their places count instead.
create or replace function agui_internal.with_reasoning(events json)
returns json
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    event  record;
    meant  record;
    opened text[];
    run_id text;
    texts  text[] := '{}';
begin
    if strpos(events::text, 'THINKING') = 0 and strpos(events::text, '\u00') = 0 then
        return events;
    end if;
    for event in
        select
            element.position,
            element.raw,
            element.type,
            agui_internal.json_string_token(element.message_id::text) as id,
            case when element.run_id::text ^@ '"' then agui_internal.json_string_token(element.run_id::text) end as run_id
        from rows from (
            json_to_recordset(agui_internal.json_guarded(events)) as (type text, "messageId" json, "runId" json),
            json_array_elements(events)
        ) with ordinality as element (type, message_id, run_id, raw, position)
        order by element.position
    loop
        if event.type = any (agui_internal.event_types('start run')) then
            run_id := event.run_id;
        end if;
        meant := agui_internal.thinking_as_reasoning(event.type, opened, event.id, run_id, event.position);
        opened := meant.opened;
        texts := array_append(texts, case
            when meant.type <> event.type then agui_internal.event_of_reasoning(event.raw, meant.type, meant.id)
            else event.raw::text
        end);
    end loop;
    return '[' || array_to_string(texts, ',') || ']';
end
$function$;

comment on function agui_internal.with_reasoning(json) is
    'Events that are given, with those of thinking as the events of reasoning that they mean.';

revoke execute on function agui_internal.with_reasoning(json) from public;
