create or replace function agui_internal.title_of_input(events json, input json)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    bytes_of_large constant int := 8 * 1024 * 1024;
    first_event json;
    messages    json;
    message     json;
    title       text;
begin
    -- To read a large input takes a multiple of its size. Compaction derives the title later.
    if agui_internal.json_octets(events) + coalesce(agui_internal.json_octets(input), 0) > bytes_of_large then
        return null;
    end if;
    messages := agui_internal.json_guarded(input) -> 'messages';
    -- The input of RUN_STARTED takes precedence over one beside the events.
    if position('"input"'::bytea in agui_internal.json_bytes(events)) > 0 then
        first_event := agui_internal.json_guarded(events) -> 0;
        if first_event ->> 'type' = 'RUN_STARTED' and json_typeof(first_event -> 'input') = 'object' then
            messages := first_event -> 'input' -> 'messages';
        end if;
    end if;
    if json_typeof(messages) is distinct from 'array' then
        return null;
    end if;
    for message in
        select element.value from json_array_elements(messages) as element (value)
    loop
        title := agui_internal.title_of_message(message);
        exit when title is not null;
    end loop;
    return title;
end
$$;

comment on function agui_internal.title_of_input(json, json) is
    'The title that the input of a run gives its thread: that of its first user message with text. '
    'The input is that of the RUN_STARTED with which events begin, else the one beside them. Null: '
    'there is none, or the input is larger than 8 MB.';

revoke execute on function agui_internal.title_of_input(json, json) from public;
