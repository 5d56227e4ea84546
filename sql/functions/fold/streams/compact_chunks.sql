-- Tracks the open streams of chunks as agui_internal.fold_events does, for well-formed events.
create or replace function agui_internal.compact_chunks(
    in events json,
    out "position" bigint,
    out id text,
    out starts boolean,
    out proceeds boolean
)
returns setof record
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    event record;
    chunk record;
    lanes jsonb;
begin
    for event in
        select
            element.position,
            element.type,
            element.raw,
            role.part,
            (case role.named_by when 'toolCallId' then element.tool_call_id else element.message_id end)::text as id,
            element.delta is not null as has_delta,
            element.owner::text as owner
        from rows from (
            json_to_recordset(events) as (type text, "messageId" json, "toolCallId" json, delta json, "subagentRunId" json),
            json_array_elements(events)
        ) with ordinality as element (type, message_id, tool_call_id, delta, owner, raw, position)
        left join agui_internal.event_roles() as role on role.type = element.type and role.does = 'chunk'
        order by element.position
    loop
        if event.part is not null then
            continue when left(event.id, 1) <> '"' or left(event.owner, 1) <> '"';
            chunk := agui_internal.fold_chunk(lanes, event.part, agui_internal.json_string_token(event.id), event.owner);
            continue when chunk.id is null;
            lanes := chunk.lanes;
            position := event.position;
            id := chunk.id;
            starts := not chunk.goes_on;
            proceeds := event.has_delta or case
                when starts then event.raw -> 'rawEvent' is not null
                else agui_internal.fold_chunk_has_content(event.raw)
            end;
            return next;
        elsif lanes is null then
            continue;
        elsif event.type = any (agui_internal.event_types('closes all')) then
            lanes := null;
        elsif event.type = any (agui_internal.event_types('closes own', 'closes named')) then
            lanes := agui_internal.fold_close_lane(lanes, event.owner);
        end if;
    end loop;
end
$function$;

comment on function agui_internal.compact_chunks(json) is
    'Interprets the chunks among events (guarded JSON): their id, whether they start a message or '
    'call, and whether they continue it. A chunk without a stream has no row.';

revoke execute on function agui_internal.compact_chunks(json) from public;
