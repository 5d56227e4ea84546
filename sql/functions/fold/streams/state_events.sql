create or replace function agui_internal.state_events(state text, max_bytes int, out events text[], out too_large text)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    guarded    constant json := agui_internal.json_guard(state)::json;
    -- Room for the rest of the event.
    room       constant int := max_bytes - 64;
    operation  text;
    operations text[] := '{}';
    size       int := 0;
begin
    if octet_length(state) <= max_bytes or json_typeof(guarded) not in ('object', 'array') then
        operation := '{"type":"STATE_SNAPSHOT","snapshot":' || state || '}';
        if octet_length(state) <= max_bytes or agui_internal.fits_frame(operation) then
            events := array[operation];
        else
            events := array['{"type":"STATE_SNAPSHOT","snapshot":null}'];
            too_large := '';
        end if;
        return;
    end if;
    events := array['{"type":"STATE_SNAPSHOT","snapshot":' || case json_typeof(guarded) when 'object' then '{}' else '[]' end || '}'];
    for operation in
        select '{"op":"add","path":' || agui_internal.json_unguard(to_json(part.path)::text)
            || ',"value":' || agui_internal.json_unguard(part.value) || '}'
        from agui_internal.state_places('', guarded, room) as part
    loop
        if octet_length(operation) > max_bytes and not agui_internal.fits_frame('{"type":"STATE_DELTA","delta":[' || operation || ']}') then
            too_large := coalesce(too_large, agui_internal.json_guard(operation)::json ->> 'path');
            continue;
        end if;
        if size > 0 and size + octet_length(operation) > room then
            events := events || ('{"type":"STATE_DELTA","delta":[' || array_to_string(operations, ',') || ']}');
            operations := '{}';
            size := 0;
        end if;
        operations := operations || operation;
        size := size + octet_length(operation) + 1;
    end loop;
    if size > 0 then
        events := events || ('{"type":"STATE_DELTA","delta":[' || array_to_string(operations, ',') || ']}');
    end if;
end
$$;

comment on function agui_internal.state_events(text, int) is
    'Events that give a client a state, each of max_bytes at most if it can be: one STATE_SNAPSHOT, or '
    'an empty one and the patches that fill it. A single value that is larger has an event of its own. '
    'too_large: the first value that no client takes (a JSON pointer), which is left out; null: none.';

revoke execute on function agui_internal.state_events(text, int) from public;
