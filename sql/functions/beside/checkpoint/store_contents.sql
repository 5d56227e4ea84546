create or replace function agui_internal.store_contents(
    thread_key uuid,
    namespace  text,
    channels   text[],
    types      text[],
    contents   json,
    subject    text
)
returns setof agui_internal.channel_content
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A row of agui.channel_part takes about 130 bytes beside its body, so short arrays stay whole.
    least_bytes constant int := 256;
    bodies json[];
    stored agui_internal.channel_content;
begin
    if json_typeof(contents) is distinct from 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: the values must be a JSON array', subject);
    end if;
    perform agui_internal.refuse_large_document(contents, subject);
    bodies := array(select element.value from json_array_elements(contents) with ordinality as element (value, place) order by element.place);
    if cardinality(channels) <> cardinality(bodies) or cardinality(types) <> cardinality(bodies)
        or array_position(channels, null) is not null or array_position(types, null) is not null
    then
        raise exception using
            errcode = 'UI008',
            message = format('%s: there are %s channels, %s types and %s values', subject,
                coalesce(cardinality(channels), 0), coalesce(cardinality(types), 0), cardinality(bodies)),
            hint = 'Each value needs a channel and a type that are not null.';
    end if;
    if (select max(octet_length(name)) from unnest(channels || types) as name) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: names of channels and types are limited to 1,024 bytes each', subject);
    end if;

    perform agui_internal.ensure_channels(thread_key, namespace, channels);
    for stored.ordinality, stored.channel_no, stored.type, stored.body in
        select named.ordinality, channel.channel_no, named.type, bodies[named.ordinality]
        from rows from (unnest(channels), unnest(types)) with ordinality as named (name, type, ordinality)
        -- The offset makes this a look-up for each name, not a pass over all names for each channel.
        cross join lateral (
            select channel.channel_no
            from agui.channel as channel
            where channel.thread_key = store_contents.thread_key and channel.namespace = store_contents.namespace and channel.name = named.name
            offset 0
        ) as channel
        -- One order for all calls, because parts are stored under a lock of the channel's row.
        order by channel.channel_no, named.ordinality
    loop
        stored.part_nos := null;
        stored.bytes := null;
        if stored.type <> 'json' then
            if json_typeof(stored.body) <> 'string' then
                raise exception using
                    errcode = 'UI008',
                    message = format('%s: the value of channel "%s" has the type "%s", so it must be a string of base64', subject,
                        left(channels[stored.ordinality], 200), left(stored.type, 200));
            end if;
            stored.bytes := decode(stored.body #>> '{}', 'base64');
            stored.body := null;
            return next stored;
            continue;
        end if;
        stored.type := null;
        if octet_length(stored.body::text) >= least_bytes and json_typeof(stored.body) = 'array' then
            stored.part_nos := agui_internal.store_parts(thread_key, stored.channel_no, stored.body);
            if stored.part_nos is not null then
                stored.body := null;
            end if;
        end if;
        return next stored;
    end loop;
end
$$;

comment on function agui_internal.store_contents(uuid, text, text[], text[], json, text) is
    'Converts the values of a call to the form in which they are stored. Creates missing channels, and '
    'stores the elements of arrays that are not stored yet. UI008: invalid arguments; UI011: too large '
    'or too deep; 22023: no base64.';

revoke execute on function agui_internal.store_contents(uuid, text, text[], text[], json, text) from public;
