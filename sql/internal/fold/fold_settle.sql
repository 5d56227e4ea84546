-- The end of agui_internal.fold_events: puts together again what its loop took apart. The arrays are those of the loop, one entry a node, by
-- its number.
--
-- The loops over queries get only arrays that they unnest: a cursor has copies, where it takes a search to find an element.
create or replace function agui_internal.fold_settle(
    before agui_internal.fold,
    in_place int,
    first_node int,
    following int[],
    same_as int[],
    keys text[],
    numbers int[],
    roles text[],
    bodies text[],
    heads text[],
    contents text[],
    documents jsonb[],
    parents int[],
    cleared int[],
    piece_nodes int[],
    pieces text[],
    growing int,
    buffer text,
    patched_nodes int[],
    patches text[]
)
returns agui_internal.fold
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    result       agui_internal.fold := before;
    part         record;
    patched      record;
    metadata     text[];
    call_parents int[] := '{}';
    call_texts   text[] := '{}';
    calls        text[];
    loaded_ids   constant text[] := before.message_ids;
    loaded_count constant int := cardinality(before.message_ids);
    added_nos    int[] := '{}';
    added_ids    text[] := '{}';
    added_roles  text[] := '{}';
    added_bodies text[] := '{}';
    message      int;
    version      int;
begin
    if buffer <> '' then
        piece_nodes := array_append(piece_nodes, growing);
        pieces := array_append(pieces, buffer);
    end if;

    if cardinality(cleared) > 0 then
        for position in 1 .. cardinality(pieces) loop
            if position <= cleared[abs(piece_nodes[position])] then
                piece_nodes[position] := 0;
            end if;
        end loop;
    end if;

    -- Strings that grew. Their pieces are JSON strings, each followed by a separator that no JSON text holds.
    for part in
        select
            piece.node,
            replace(rtrim(string_agg(piece.text, '' order by piece.position), E'\x01'), E'"\x01"', '') as grown
        from unnest(piece_nodes, pieces) with ordinality as piece (node, text, position)
        where piece.node > 0
        group by piece.node
    loop
        contents[part.node] := case
            when contents[part.node] ^@ '"' then left(contents[part.node], -1) || substr(part.grown, 2)
            else part.grown
        end;
    end loop;

    -- Metadata, key by key; the last one wins.
    if 0 > any (piece_nodes) then
        for part in
            with piece as (
                select -piece.node as node, piece.text, piece.position, count(*) over (partition by piece.node) as pieces
                from unnest(piece_nodes, pieces) with ordinality as piece (node, text, position)
                where piece.node < 0
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
    end if;

    -- Activities.
    if cardinality(patches) > 0 then
        for part in
            select patch.node, array_agg(patch.text order by patch.position) as patches
            from unnest(patched_nodes, patches) with ordinality as patch (node, text, position)
            where patch.node > 0
            group by patch.node
        loop
            patched := agui_internal.fold_activity(documents[part.node], contents[part.node], part.patches);
            documents[part.node] := patched.document;
        end loop;
    end if;

    -- Tool calls, in the order in which their message got them, of the messages whose calls were changed.
    for node in coalesce(array_lower(parents, 1), 1) .. coalesce(array_upper(parents, 1), 0) loop
        if parents[node] > 0 and heads[parents[node]] is not null then
            call_parents := array_append(call_parents, parents[node]);
            call_texts := array_append(
                call_texts,
                coalesce(bodies[node], agui_internal.fold_close(heads[node], contents[node], metadata[node], null))
            );
        end if;
    end loop;

    if cardinality(call_parents) > 0 then
        for part in
            select
                call.parent,
                '[' || string_agg(call.text, ',' order by call.position) || ']' as list
            from unnest(call_parents, call_texts) with ordinality as call (parent, text, position)
            group by call.parent
        loop
            calls[part.parent] := part.list;
        end loop;
    end if;

    -- Messages.
    for message in coalesce(array_lower(heads, 1), 1) .. coalesce(array_upper(heads, 1), 0) loop
        if heads[message] is not null and parents[message] is null then
            bodies[message] := agui_internal.json_unguard(
                agui_internal.fold_close(
                    heads[message],
                    coalesce(agui_internal.json_guarded_from_jsonb(documents[message]), contents[message]),
                    metadata[message],
                    calls[message]
                )
            );
        end if;
    end loop;

    -- Their order. Most often the first ones are those of before, in their places.
    message := case when in_place > 0 then following[in_place] else first_node end;
    while message is not null loop
        version := coalesce(same_as[message], message);
        added_nos := array_append(
            added_nos,
            case
                when numbers[version] > 0 then numbers[version]
                when version = any (same_as) then -version
            end
        );
        added_ids := array_append(
            added_ids,
            case when message <= loaded_count then loaded_ids[message] else agui_internal.json_string_text(keys[message]) end
        );
        added_roles := array_append(added_roles, roles[message]);
        added_bodies := array_append(added_bodies, bodies[version]);
        message := following[message];
    end loop;

    result.message_nos := numbers[1 : in_place] || added_nos;
    result.message_ids := loaded_ids[1 : in_place] || added_ids;
    result.roles := roles[1 : in_place] || added_roles;
    result.bodies := bodies[1 : in_place] || added_bodies;
    return result;
end
$function$;

comment on function agui_internal.fold_settle(
    agui_internal.fold, int, int, int[], int[], text[], int[], text[], text[], text[], text[], jsonb[], int[], int[], int[], text[], int, text, int[],
    text[]
) is
    'A fold with the messages that agui_internal.fold_events has in its arrays: those in one piece as they were, the others put together again.';

revoke execute on function agui_internal.fold_settle(
    agui_internal.fold, int, int, int[], int[], text[], int[], text[], text[], text[], text[], jsonb[], int[], int[], int[], text[], int, text, int[],
    text[]
) from public;
