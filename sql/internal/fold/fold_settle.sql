-- The end of agui_internal.fold_events: puts the nodes back together, in the order of the
-- conversation.
-- Loops over queries get only arrays that they unnest: a cursor has copies in which finding an
-- element takes a search.
create or replace function agui_internal.fold_settle(
    before agui_internal.fold,
    first_node int,
    following int[],
    untouched int,
    loaded_count int,
    node_count int,
    changes agui_internal.fold_change[],
    limits agui_internal.fold_limits,
    keys text[],
    roles text[],
    parents int[],
    numbers int[],
    same_as int[],
    shared boolean[],
    bodies text[],
    heads text[],
    contents text[],
    encrypted text[],
    types text[],
    content_since int[],
    metadata_since int[],
    large text[]
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    result       agui_internal.fold := before;
    loaded_ids   constant text[] := before.message_ids;
    part         record;
    patched      record;
    metadata     text[];
    call_parents int[] := '{}';
    call_texts   text[] := '{}';
    calls        text[];
    place        int;
    version      int;
    added_nos    int[] := '{}';
    added_ids    text[] := '{}';
    added_roles  text[] := '{}';
    added_bodies text[] := '{}';
begin
    -- Changes of something that was replaced later do not count.
    if exists (select from unnest(content_since) as since where since > 0) then
        for place in 1 .. cardinality(changes) loop
            version := changes[place].node;
            if place <= (case when changes[place].kind = 'merge' then metadata_since[version] else content_since[version] end) then
                changes[place].kind := null;
            end if;
        end loop;
    end if;

    -- Strings that grew.
    for part in
        select change.node, replace(string_agg(change.text, E'\x01' order by change.ordinality), E'"\x01"', '') as grown
        from unnest(changes) with ordinality as change
        where change.kind = 'grow'
        group by change.node
    loop
        contents[part.node] := case
            when contents[part.node] ^@ '"' then left(contents[part.node], -1) || substr(part.grown, 2)
            else part.grown
        end;
    end loop;

    -- Metadata, key by key; the last write wins.
    for part in
        with piece as materialized (
            select change.node, change.text, change.ordinality as position, count(*) over (partition by change.node) as pieces
            from unnest(changes) with ordinality as change
            where change.kind = 'merge'
        ),
        member as (
            select
                piece.node,
                each.key,
                (array_agg(each.value::text order by piece.position desc, each.position desc))[1] as value,
                min(array[piece.position, each.position]) as position
            from piece
            left join lateral json_each(piece.text::json) with ordinality as each (key, value, position) on true
            where piece.pieces > 1
            group by piece.node, each.key
        )
        select piece.node, piece.text as merged
        from piece
        where piece.pieces = 1
        union all
        select
            member.node,
            '{' || coalesce(
                string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position)
                    filter (where member.key is not null),
                ''
            ) || '}'
        from member
        group by member.node
    loop
        metadata[part.node] := part.merged;
    end loop;

    -- Activities. The last patch that succeeds determines the type.
    for part in
        select
            change.node,
            array_agg(change.text order by change.ordinality) as patches,
            array_agg(change.name order by change.ordinality) as types
        from unnest(changes) with ordinality as change
        where change.kind = 'patch'
        group by change.node
    loop
        patched := agui_internal.fold_activity(contents[part.node], part.patches, limits, limits.fold_fuel - result.spent);
        result.spent := result.spent + patched.spent;
        if result.spent > limits.fold_fuel then
            return result;
        end if;
        contents[part.node] := patched.content;
        if part.types[patched.last_applied] <> types[part.node] then
            heads[part.node] := agui_internal.fold_member(heads[part.node], 'activityType', part.types[patched.last_applied]);
        end if;
    end loop;

    -- Tool calls of changed messages, in the order in which the message got them.
    for place in loaded_count + 1 .. node_count loop
        continue when parents[place] is null or parents[place] = 0 or heads[parents[place]] is null;
        call_parents := array_append(call_parents, parents[place]);
        call_texts := array_append(
            call_texts,
            coalesce(
                bodies[place],
                agui_internal.fold_close(
                    agui_internal.fold_fill(heads[place], large), contents[place], metadata[place], null, encrypted[place]
                )
            )
        );
    end loop;
    for part in
        select call.parent, '[' || string_agg(call.text, ',' order by call.position) || ']' as list
        from unnest(call_parents, call_texts) with ordinality as call (parent, text, position)
        group by call.parent
    loop
        calls[part.parent] := part.list;
    end loop;

    -- Messages.
    place := case when untouched > 0 then following[untouched] else first_node end;
    while place is not null loop
        version := coalesce(same_as[place], place);
        added_nos := array_append(added_nos, case when numbers[version] > 0 then numbers[version] when shared[version] then -version end);
        added_ids := array_append(
            added_ids,
            case when place <= loaded_count then loaded_ids[place] else agui_internal.json_string_text(keys[version]) end
        );
        added_roles := array_append(added_roles, roles[version]);
        added_bodies := array_append(
            added_bodies,
            case
                when heads[version] is null then bodies[version]
                else agui_internal.json_unguard(
                    agui_internal.fold_close(
                        agui_internal.fold_fill(heads[version], large), contents[version], metadata[version], calls[version], encrypted[version]
                    )
                )
            end
        );
        place := following[place];
    end loop;

    result.message_nos := before.message_nos[1 : untouched] || added_nos;
    result.message_ids := loaded_ids[1 : untouched] || added_ids;
    result.roles := before.roles[1 : untouched] || added_roles;
    result.bodies := before.bodies[1 : untouched] || added_bodies;
    return result;
end
$function$;

comment on function agui_internal.fold_settle(
    agui_internal.fold, int, int[], int, int, int, agui_internal.fold_change[], agui_internal.fold_limits,
    text[], text[], int[], int[], int[], boolean[], text[], text[], text[], text[], text[], int[], int[], text[]
) is
    'Returns the fold with the messages that agui_internal.fold_events has as nodes: nodes in one '
    'piece unchanged, the others put back together. The first `untouched` messages are those of '
    'before. Adds the fuel that patches use; if it is exhausted, nothing else is changed.';

revoke execute on function agui_internal.fold_settle(
    agui_internal.fold, int, int[], int, int, int, agui_internal.fold_change[], agui_internal.fold_limits,
    text[], text[], int[], int[], int[], boolean[], text[], text[], text[], text[], text[], int[], int[], text[]
) from public;
