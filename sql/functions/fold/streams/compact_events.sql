-- One step may produce something that the next step can compact further. So the steps are repeated
-- until nothing changes, which the second step usually confirms on a stream that is short by then.
-- A stream that does not reach a fixed point is only repaired. Either way the function is
-- idempotent: compacting the result gives the same result.
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
            message = format('unknown shape %s: use "stream" or "snapshot"', coalesce('"' || shape || '"', 'null'));
    elsif events is null or json_typeof(events) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('events is %s, expected a JSON array of AG-UI events', coalesce('a JSON ' || json_typeof(events), 'null'));
    end if;

    if exists (select from json_array_elements(events) as event where json_typeof(event) <> 'object') then
        raise exception using
            errcode = 'UI008',
            message = 'events contains a value that is not a JSON object; each AG-UI event must be one';
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
    'Returns the compacted stream of a JSON array of events: fewer events with the same messages, '
    'state, interrupts and open chunks. The function is idempotent. Shape stream: each message and '
    'tool call becomes START, one CONTENT or ARGS, and END. Shape snapshot: one MESSAGES_SNAPSHOT '
    'and one STATE_SNAPSHOT before the end of the last run. RUN_STARTED.input.messages keeps the '
    'messages that no earlier event brought, and those of subagents. RAW, CUSTOM, STEP_*, '
    'SUBAGENT_*, the other RUN_* and unknown events stay unchanged. If a run continues after its '
    'end, ends in the middle of a message or call, or lacks its beginning, the events that the '
    'protocol requires are added. '
    'Errors: UI008 events is not a JSON array of objects, UI013 unknown shape, UI023 the fold '
    'exceeds a limit.';

revoke execute on function agui.compact_events(json, text) from public;
