create or replace function agui_internal.title_of_input(events json, input json)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    first_event json;
    messages    json := agui_internal.json_guarded(input) -> 'messages';
    message     json;
    title       text;
begin
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
    'there is none.';

revoke execute on function agui_internal.title_of_input(json, json) from public;
