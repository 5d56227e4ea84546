-- One step may leave something for the next: what is compacted once reads differently. So steps follow each other until nothing
-- changes, which the second one usually finds on a stream that is short by then. A stream that does not come to rest is repaired only.
-- Either way, compacting the result again gives the result.
create or replace function agui.compact_events(events json, shape text default 'stream')
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    compacted text := events;
    next_step text;
begin
    if shape is null or shape not in ('stream', 'snapshot') then
        raise exception using
            errcode = 'UI013',
            message = format('there is no shape %s: use "stream" or "snapshot"', coalesce('"' || shape || '"', 'null'));
    elsif events is null or json_typeof(events) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('events is %s, it must be a JSON array of AG-UI events', coalesce('a JSON ' || json_typeof(events), 'null'));
    end if;

    if exists (select from json_array_elements(events) as event where json_typeof(event) <> 'object') then
        raise exception using
            errcode = 'UI008',
            message = 'events holds something else than JSON objects, each AG-UI event is one';
    end if;

    for step in 1 .. 4 loop
        next_step := agui_internal.compact_step(agui_internal.repaired_events(compacted::json), shape);
        if next_step = compacted then
            return compacted::json;
        end if;
        compacted := next_step;
    end loop;
    return agui_internal.repaired_events(events);
end
$function$;

comment on function agui.compact_events(json, text) is
    'Fewer events that mean the same: the same messages, state, interrupts and open chunks; compacted again '
    'they do not change. Shape stream: each message and tool call as START, one CONTENT or ARGS, and END; '
    'snapshot: one MESSAGES_SNAPSHOT and one STATE_SNAPSHOT before the end of the last run. '
    'RUN_STARTED.input.messages keeps what came before in no event, and messages of subagents; RAW, CUSTOM, '
    'STEP_*, SUBAGENT_*, the other RUN_* and unknown events stay as they are. Where a run goes on behind its end, '
    'ends in the middle of something or lacks its beginning, the events that the protocol wants there are added. '
    'Errors: UI008 events is no JSON array, UI013 there is no such shape, UI023 the fold is over a limit.';

revoke execute on function agui.compact_events(json, text) from public;
