create or replace function agui_internal.title_of_events(events json)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    bytes_of_large constant int := 256 * 1024;
    lists constant text[] := agui_internal.event_types('list messages');
    texts constant text[] := agui_internal.event_types('start text', 'continue text', 'chunk text');
    title text;
begin
    if agui_internal.json_octets(events) > bytes_of_large or position('"user"'::bytea in agui_internal.json_bytes(events)) = 0 then
        return null;
    end if;
    select agui_internal.title_of_message(said.message) into title
    from (
        select event.position, message.value as message
        from json_array_elements(agui_internal.json_guarded(events)) with ordinality as event (value, position)
        cross join lateral json_array_elements(case
            when event.value ->> 'type' = any (lists) and json_typeof(event.value -> 'messages') = 'array' then event.value -> 'messages'
            else '[]'
        end) as message (value)
        union all
        -- A message of text that the user said.
        select min(event.position), json_build_object('role', 'user', 'content', string_agg(event.value ->> 'delta', '' order by event.position))
        from json_array_elements(agui_internal.json_guarded(events)) with ordinality as event (value, position)
        where event.value ->> 'type' = any (texts)
        group by event.value ->> 'messageId'
        having bool_or(event.value ->> 'role' = 'user')
    ) as said
    where agui_internal.title_of_message(said.message) is not null
    order by said.position
    limit 1;
    return title;
end
$$;

comment on function agui_internal.title_of_events(json) is
    'The title that events of a run give its thread: that of the first message of the user in a '
    'MESSAGES_SNAPSHOT or a text message. Null: there is none, or the events are larger than 256 KB.';

revoke execute on function agui_internal.title_of_events(json) from public;
