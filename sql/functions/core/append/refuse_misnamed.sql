create or replace function agui_internal.refuse_misnamed(events json, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    first json;
begin
    -- Splitting takes copies of a large call.
    if agui_internal.json_octets(events) > 1000000 then
        return;
    end if;
    -- Not events -> 0, which fails if a string holds \u0000 or a lone surrogate.
    select agui_internal.json_guarded(element.value) into first
    from json_array_elements(events) as element (value)
    limit 1;
    if first ->> 'type' like 'EventType.%'
        or first ->> 'type' = 'RUN_STARTED' and (first -> 'run_id' is not null or first -> 'thread_id' is not null)
    then
        raise exception using
            errcode = 'UI008',
            message = format('%s: its first event has the names of Python (run_id, thread_id, EventType.RUN_STARTED), not those of AG-UI (runId, threadId, RUN_STARTED)', subject),
            hint = 'No client reads such events. Encode them with event.model_dump_json(by_alias=True, exclude_none=True), or with EventEncoder of ag-ui-protocol.';
    end if;
end
$$;

comment on function agui_internal.refuse_misnamed(json, text) is
    'UI008: the first event of a new run is a RUN_STARTED of pydantic''s model_dump without aliases. Its '
    'ids, and those of all events behind it, have names that no client reads.';

revoke execute on function agui_internal.refuse_misnamed(json, text) from public;
