-- The official client of protocol 1.0 reads an event of thinking as one of reasoning, whose id it
-- makes up. Readers of a log must agree on the id, so it is made of the run and of the seq of the
-- event that began the message. A piece or an end of nothing gets an id that nothing else has. What
-- compaction has written as reasoning opens and ends the same message: what follows may be thinking.
-- compaction.Thinking does the same.
create or replace function agui_internal.thinking_as_reasoning(
    inout type   text,
    inout opened text[],
    inout id     text,
    in    run_id text,
    in    seq    bigint
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    infix constant text := left(coalesce(run_id, '""'), -1) || '-thinking-';
    place constant int := case
        when type = any (agui_internal.event_types('start thinking span', 'end thinking span', 'start span', 'end span')) then 2
        else 1
    end;
    starts constant boolean := type = any (
        agui_internal.event_types('start thinking', 'start thinking span', 'start reasoning', 'start span')
    );
    meant constant text := case
        when type = any (agui_internal.event_types('start thinking')) then (agui_internal.event_types('start reasoning'))[1]
        when type = any (agui_internal.event_types('continue thinking')) then (agui_internal.event_types('continue reasoning'))[1]
        when type = any (agui_internal.event_types('end thinking')) then (agui_internal.event_types('end reasoning'))[1]
        when type = any (agui_internal.event_types('start thinking span')) then (agui_internal.event_types('start span'))[1]
        when type = any (agui_internal.event_types('end thinking span')) then (agui_internal.event_types('end span'))[1]
    end;
begin
    if type = any (agui_internal.event_types('start run', 'finish run', 'fail run')) then
        opened := null;
        return;
    elsif meant is not null then
        type := meant;
        id := case when not starts then opened[place] end;
        id := coalesce(id, infix || seq || '"');
    elsif starts and (id ^@ infix and substr(id, length(infix) + 1) ~ '^[0-9]+"$') is not true then
        return;
    end if;
    if starts then
        opened[place] := id;
    elsif opened[place] = id and type = any (agui_internal.event_types('end reasoning', 'end span')) then
        opened[place] := null;
    end if;
end
$function$;

comment on function agui_internal.thinking_as_reasoning(text, text[], text, text, bigint) is
    'The type and the id of the event of reasoning that an event of thinking means; those of other '
    'events stay. opened has the ids of the message and of the span that are open, and changes with '
    'the event. Ids and run_id (null: unknown) are JSON strings of guarded text.';

revoke execute on function agui_internal.thinking_as_reasoning(text, text[], text, text, bigint) from public;
