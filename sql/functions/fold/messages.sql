-- A list of messages, of a MESSAGES_SNAPSHOT or an input, read as the official client reads it.
--
-- - A message that a snapshot names is replaced by the version of the snapshot, at its present
--   place. New ones follow in the order of the snapshot. Other messages are removed.
-- - Activities and reasoning often exist only in the client. They stay, unless the snapshot
--   contains any of their role. For activities, the metadata may state for which types the snapshot
--   decides.
-- - If several messages have an id that the snapshot names, they become one message at several
--   places, with one number.
-- - Most messages of a snapshot equal those present, byte for byte, and are not parsed. A list that
--   names few of many messages has a fast path (fold_few_messages).

create or replace function agui_internal.fold_snapshot_messages(before agui_internal.fold, messages json, metadata json)
returns agui_internal.fold
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    result      agui_internal.fold := before;
    authority   constant json := metadata -> '@ag-ui/client';
    spoken_for  constant json := case when json_typeof(authority) = 'object' then authority -> 'authoritativeActivityTypes' end;
    owned_types text[];
    changed     record;
begin
    -- Types that are not valid: the snapshot is authoritative for none.
    if authority is not null and (json_typeof(authority) <> 'object' or spoken_for is not null) then
        owned_types := '{}';
        if json_typeof(spoken_for) = 'array' then
            if not exists (select from json_array_elements(spoken_for) as type where json_typeof(type.value) <> 'string') then
                owned_types := array(select agui_internal.json_string_token(type.value::text) from json_array_elements(spoken_for) as type);
            end if;
        end if;
    end if;

    if json_array_length(messages) * 10 < cardinality(before.message_ids) and spoken_for is null and owned_types is null then
        select * into changed from agui_internal.fold_few_messages(before, messages);
        if changed.is_done and changed.bodies is null then
            return before;
        elsif changed.is_done then
            result.message_nos := changed.message_nos;
            result.message_ids := changed.message_ids;
            result.roles := changed.roles;
            result.bodies := changed.bodies;
            return result;
        end if;
    end if;

    with present as materialized (
        select message.*
        from unnest(agui_internal.fold_keys(before.message_ids, before.bodies), before.roles, before.bodies, before.message_nos)
            with ordinality as message (key, role, body, message_no, position)
    ),
    known as (
        select present.body, min(present.key) as key, min(present.role) as role
        from present
        group by present.body
    ),
    listed as materialized (
        select message.body, agui_internal.json_unguard(message.body) as unguarded, message.position
        from unnest(agui_internal.fold_message_list(messages)) with ordinality as message (body, position)
    ),
    named as materialized (
        select
            case when known.body is not null then known.key else agui_internal.json_string_token(field.id) end as key,
            case when known.body is not null then known.role else agui_internal.json_string_text(field.role) end as role,
            listed.unguarded as body,
            listed.position
        from listed
        left join known on known.body = listed.unguarded
        cross join lateral (
            select
                case
                    when known.body is null and json_typeof(listed.body::json -> 'id') = 'string'
                        then (listed.body::json -> 'id')::text
                end as id,
                case when known.body is null then (listed.body::json -> 'role')::text end as role
            offset 0  -- so that a message is parsed once, not wherever the result is used
        ) as field
    ),
    -- If several messages have one id, the first one present and the last one in the snapshot
    -- count.
    place as materialized (
        select present.key, min(present.position) as first_position, count(*) as places
        from present
        where present.key is not null
        group by present.key
    ),
    renewed as (
        select
            place.*,
            first.message_no as first_no,
            named.role,
            named.body,
            first.body = named.body as is_same
        from place
        join present as first on first.position = place.first_position
        join (select named.key, max(named.position) as position from named group by named.key) as last on last.key = place.key
        join named on named.position = last.position
    ),
    version as (
        select
            false as is_new,
            present.position,
            present.key,
            coalesce(renewed.body, present.body) as body,
            case when renewed.key is null then present.role else renewed.role end as role,
            case
                when renewed.key is null then present.message_no
                when renewed.is_same and renewed.first_no > 0 then renewed.first_no
                when renewed.places > 1
                    then least((select min(no) from unnest(before.message_nos) as no), 0) - renewed.first_position::int
            end as message_no
        from present
        left join renewed on renewed.key = present.key
        where renewed.key is not null
        or case
            when present.role = 'activity' and json_typeof(spoken_for) = 'null' then false
            when present.role = 'activity' and owned_types is not null
                then (agui_internal.json_string_token((agui_internal.json_guard(present.body)::json -> 'activityType')::text) = any (owned_types))
                    is not true
            when present.role in ('activity', 'reasoning') then not exists (select from named where named.role = present.role)
            else false
        end
        union all
        select true, named.position, named.key, named.body, named.role, null
        from named
        where not exists (select from place where place.key = named.key)
        order by 1, 2
    )
    select
        coalesce(array_agg(message_no), '{}'),
        coalesce(array_agg(agui_internal.json_string_text(key)), '{}'),
        coalesce(array_agg(role), '{}'),
        coalesce(array_agg(body), '{}')
    into result.message_nos, result.message_ids, result.roles, result.bodies
    from version;

    return result;
end
$function$;

comment on function agui_internal.fold_snapshot_messages is
    'The fold after a MESSAGES_SNAPSHOT event with these messages and metadata (guarded JSON).';

-- Fast path for a list that names few messages of many, most of which stay.
-- agui_internal.fold_snapshot_messages would take each of them apart and put it back together.
create or replace function agui_internal.fold_few_messages(
    in before agui_internal.fold,
    in messages json,
    out is_done boolean,
    out message_nos int[],
    out message_ids text[],
    out roles text[],
    out bodies text[]
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    kept_roles   text[];
    named_ids    text[];
    named_roles  text[];
    named_bodies text[];
    places       int[];
    gone         int[];
    place        int;
begin
    is_done := false;
    select
        coalesce(array_agg(agui_internal.json_string_text(agui_internal.json_string_token(named.id)) order by named.position), '{}'),
        coalesce(array_agg(agui_internal.json_string_text(named.role) order by named.position), '{}'),
        coalesce(array_agg(agui_internal.json_unguard(named.body) order by named.position), '{}')
    into named_ids, named_roles, named_bodies
    from (
        select
            listed.body,
            listed.position,
            case when json_typeof(listed.body::json -> 'id') = 'string' then (listed.body::json -> 'id')::text end as id,
            (listed.body::json -> 'role')::text as role
        from unnest(agui_internal.fold_message_list(messages)) with ordinality as listed (body, position)
    ) as named;
    kept_roles := array(select role from unnest('{activity,reasoning}'::text[]) as role where role <> all (named_roles) is not false);

    -- The places of the messages that the list names. Ids with several spellings, and ids that
    -- several messages have, are left to the caller.
    if strpos(array_to_string(named_ids, ''), '\') > 0 or strpos(array_to_string(before.message_ids, ''), '\') > 0 then
        return;
    end if;
    if (select count(distinct named.id) < count(named.id) from unnest(named_ids) as named (id)) then
        return;
    end if;
    if cardinality(named_ids) <= 10 then
        places := array(
            select present.position
            from unnest(named_ids) as named (id), unnest(array_positions(before.message_ids, named.id)) as present (position)
            order by present.position
        );
    else
        places := array(
            select present.position
            from unnest(before.message_ids) with ordinality as present (id, position)
            where present.id = any (named_ids)
            order by present.position
        );
    end if;
    if (
        select count(distinct present.id) < count(*) or bool_or(present.number < 0)
        from unnest(places) as found (position)
        cross join lateral (
            select before.message_ids[found.position] as id, before.message_nos[found.position] as number
        ) as present
    ) then
        return;
    end if;

    if not before.roles <@ kept_roles then
        gone := array(
            select present.position
            from unnest(before.roles) with ordinality as present (role, position)
            where present.role <> all (kept_roles) is not false and present.position <> all (places)
            order by present.position desc
        );
        if cardinality(gone) > 20 then
            return;
        end if;
    end if;

    is_done := true;
    if named_ids = '{}' and coalesce(gone, '{}') = '{}' then
        return;
    end if;
    message_nos := before.message_nos;
    message_ids := before.message_ids;
    roles := before.roles;
    bodies := before.bodies;
    for named in 1 .. cardinality(named_ids) loop
        place := (select found.position from unnest(places) as found (position) where before.message_ids[found.position] = named_ids[named]);
        if place is null then
            message_nos := array_append(message_nos, null);
            message_ids := array_append(message_ids, named_ids[named]);
            roles := array_append(roles, named_roles[named]);
            bodies := array_append(bodies, named_bodies[named]);
        elsif bodies[place] <> named_bodies[named] then
            message_nos[place] := null;
            roles[place] := named_roles[named];
            bodies[place] := named_bodies[named];
        end if;
    end loop;
    if gone is not null then
        foreach place in array gone loop
            message_nos := message_nos[: place - 1] || message_nos[place + 1 :];
            message_ids := message_ids[: place - 1] || message_ids[place + 1 :];
            roles := roles[: place - 1] || roles[place + 1 :];
            bodies := bodies[: place - 1] || bodies[place + 1 :];
        end loop;
    end if;
end
$function$;

comment on function agui_internal.fold_few_messages is
    'The result of agui_internal.fold_snapshot_messages for a short list (guarded JSON) whose '
    'metadata has no effect. is_done is false if many messages are removed or an id is not that of '
    'exactly one message. The arrays are null if nothing changes.';

create or replace function agui_internal.fold_message_list(messages json)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select array(
        select case
            when json_typeof(message.value) = 'string' then '{"role":"user","content":' || message.value || '}'
            else agui_internal.message_as_read(message.value)
        end
        from json_array_elements(messages) with ordinality as message (value, position)
        where json_typeof(message.value) in ('object', 'string')
        order by message.position
    )
$function$;

comment on function agui_internal.fold_message_list is
    'The messages of a list in an event (guarded JSON). A plain string is a user message without '
    'an id. A value that is not a message is left out, and the others are as the client reads them.';

create or replace function agui_internal.message_as_read(message json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    read    text := message::text;
    content text;
    name    text;
begin
    -- Most messages have none of these, so they need not be parsed. (The escapes are of letters.)
    if strpos(read, 'null') = 0
        and strpos(read, 'binary') = 0
        and strpos(read, '\u006') = 0
        and strpos(read, '\u007') = 0
    then
        return read;
    end if;
    if json_typeof(message -> 'content') = 'array' then
        content := agui_internal.parts_as_read(message -> 'content');
        if content is not null then
            read := agui_internal.json_member_set(read, 'content', content);
        end if;
    end if;
    foreach name in array '{subagentRunId,content,toolCalls,name,encryptedValue,metadata}'::text[] loop
        if (message -> name)::text = 'null'
            and (name <> 'content' or agui_internal.json_string_token((message -> 'role')::text) = '"assistant"')
        then
            read := agui_internal.json_member_set(read, name, null);
        end if;
    end loop;
    return read;
end
$function$;

comment on function agui_internal.message_as_read is
    'A message of a list (guarded JSON) as the client reads it: its parts, and without members that '
    'are null and may be absent.';

-- Protocol 0.x has parts of type "binary". The client makes an image, audio, video or document of
-- each, or drops it if the list has that one, too. One that has neither data nor a URL stays: to
-- drop it would lose it.
create or replace function agui_internal.parts_as_read(parts json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    read       text[] := '{}';
    is_changed boolean := false;
    part       json;
    kind       text;
    mime_type  text;
    source     text;
    value      text;
    filename   text;
begin
    for part in select each.value from json_array_elements(parts) with ordinality as each (value, position) order by each.position loop
        kind := case when json_typeof(part) = 'object' then agui_internal.json_string_token((part -> 'type')::text) end;
        mime_type := part -> 'mimeType';
        if kind = '"binary"' and mime_type ^@ '"' then
            filename := part -> 'filename';
            if filename not like '"_%"' then
                filename := null;
            end if;
            foreach source in array '{data,url}'::text[] loop
                value := part -> source;
                exit when value like '"_%"';
                value := null;
            end loop;
            if value is not null then
                is_changed := true;
                kind := case split_part(agui_internal.json_string_token(mime_type), '/', 1)
                    when '"image' then 'image'
                    when '"audio' then 'audio'
                    when '"video' then 'video'
                    else 'document'
                end;
                continue when exists (
                    select
                    from json_array_elements(parts) as other (part)
                    where json_typeof(other.part) = 'object'
                        and agui_internal.json_string_token((other.part -> 'type')::text) = '"' || kind || '"'
                        and agui_internal.json_string_token((other.part -> 'source' -> 'type')::text) = '"' || source || '"'
                        and agui_internal.json_string_token((other.part -> 'source' -> 'value')::text) = agui_internal.json_string_token(value)
                        and agui_internal.json_string_token((other.part -> 'source' -> 'mimeType')::text) = agui_internal.json_string_token(mime_type)
                        and (
                            filename is null
                            or agui_internal.json_string_token((other.part -> 'metadata' -> 'filename')::text) = agui_internal.json_string_token(filename)
                        )
                );
                part := concat(
                    '{"type":"', kind, '","source":{"type":"', source, '","value":', value, ',"mimeType":', mime_type, '}',
                    case when filename is not null then ',"metadata":{"filename":' || filename || '}' end, '}'
                );
            end if;
        elsif kind in ('"image"', '"audio"', '"video"', '"document"') and (part -> 'metadata')::text = 'null' then
            is_changed := true;
            part := agui_internal.json_member_set(part::text, 'metadata', null);
        end if;
        read := array_append(read, part::text);
    end loop;
    return case when is_changed then '[' || array_to_string(read, ',') || ']' end;
end
$function$;

comment on function agui_internal.parts_as_read is
    'The parts of a content (guarded JSON) as the client reads them; null: as they are. Parts of '
    'protocol 0.x become those of 1.0. Metadata of media that is null is left out.';

create or replace function agui_internal.fold_keys(message_ids text[], bodies text[])
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return array(
        select
            case
                when strpos(message.id, '\') = 0 then to_json(message.id)::text
                -- Such an id may still be guarded, so it is ambiguous.
                when message.id is not null then agui_internal.json_string_token((agui_internal.json_guard(message.body)::json -> 'id')::text)
            end
        from unnest(message_ids, bodies) with ordinality as message (id, body, position)
        order by message.position
    );
end
$function$;

comment on function agui_internal.fold_keys is
    'The ids of the messages of an agui_internal.fold as JSON strings of guarded text, in which '
    'different ids are always different; null for a message without an id.';
