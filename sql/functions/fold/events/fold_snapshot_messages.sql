-- Rules of MESSAGES_SNAPSHOT: A message named in the snapshot is replaced by the version of the
-- snapshot, at its present place. New ones follow in the order of the snapshot. Other messages are
-- removed. Activities and reasoning often exist only in the client: they stay unless the snapshot
-- contains any of their role. For activities, the metadata may state which types the snapshot is
-- authoritative for.
-- If several messages have an id that the snapshot names, they become one message at several
-- places, with one number.
-- Most messages of a snapshot equal those present, byte for byte, and need no parsing.
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

comment on function agui_internal.fold_snapshot_messages(agui_internal.fold, json, json) is
    'The fold after a MESSAGES_SNAPSHOT event with these messages and metadata (guarded JSON).';

revoke execute on function agui_internal.fold_snapshot_messages(agui_internal.fold, json, json) from public;
