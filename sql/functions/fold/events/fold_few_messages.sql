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

comment on function agui_internal.fold_few_messages(agui_internal.fold, json) is
    'The result of agui_internal.fold_snapshot_messages for a short list (guarded JSON) whose '
    'metadata has no effect. is_done is false if many messages are removed or an id is not that of '
    'exactly one message. The arrays are null if nothing changes.';

revoke execute on function agui_internal.fold_few_messages(agui_internal.fold, json) from public;
