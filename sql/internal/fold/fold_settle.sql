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
    texts text[],
    heads text[],
    contents text[],
    insides text[],
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
    result       agui_internal.fold;
    part         record;
    patched      record;
    metadata     text[];
    call_parents int[] := '{}';
    call_texts   text[] := '{}';
    calls        text[];
    opened       int[];
    opened_texts text[];
    ordered      int[] := '{}';
    node         int := case when in_place > 0 then following[in_place] else first_node end;
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
            when left(contents[part.node], 1) = '"' then left(contents[part.node], -1) || substr(part.grown, 2)
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
                left join lateral json_each(case when left(piece.text, 1) = '{' then piece.text else '{}' end::json)
                    with ordinality as each (key, value, position) on true
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

    -- Tool calls, in the order in which their message got them.
    for node_of_call in coalesce(array_lower(parents, 1), 1) .. coalesce(array_upper(parents, 1), 0) loop
        if parents[node_of_call] > 0 and texts[parents[node_of_call]] is null then
            call_parents := array_append(call_parents, parents[node_of_call]);
            call_texts := array_append(
                call_texts,
                coalesce(
                    texts[node_of_call],
                    agui_internal.json_unguard(
                        '{' || concat_ws(
                            ',',
                            nullif(substr(heads[node_of_call], 2, length(heads[node_of_call]) - 2), ''),
                            case
                                when insides[node_of_call] is not null then '"function":{' || concat_ws(
                                    ',',
                                    nullif(substr(insides[node_of_call], 2, length(insides[node_of_call]) - 2), ''),
                                    '"arguments":' || contents[node_of_call]
                                ) || '}'
                            end,
                            '"metadata":' || metadata[node_of_call]
                        ) || '}'
                    )
                )
            );
        end if;
    end loop;

    for part in
        select
            call.parent,
            '[' || string_agg(call.text, ',' order by call.position) || ']' as list
        from unnest(call_parents, call_texts) with ordinality as call (parent, text, position)
        group by call.parent
    loop
        calls[part.parent] := part.list;
    end loop;

    -- Messages that were taken apart.
    select
        array_agg(message.node),
        array_agg(
            '{' || concat_ws(
                ',',
                agui_internal.json_unguard(nullif(substr(heads[message.node], 2, length(heads[message.node]) - 2), '')),
                '"content":' || coalesce(agui_internal.json_from_jsonb(documents[message.node]), agui_internal.json_unguard(contents[message.node])),
                '"toolCalls":' || coalesce(calls[message.node], agui_internal.json_unguard(insides[message.node])),
                '"metadata":' || agui_internal.json_unguard(metadata[message.node])
            ) || '}'
        )
    into opened, opened_texts
    from generate_subscripts(heads, 1) as message (node)
    where heads[message.node] is not null and texts[message.node] is null and parents[message.node] is null;

    for position in 1 .. coalesce(cardinality(opened), 0) loop
        texts[opened[position]] := opened_texts[position];
    end loop;

    -- The messages in their order. Most often the first ones are those of before, in their places.
    while node is not null loop
        ordered := array_append(ordered, node);
        node := following[node];
    end loop;

    select
        coalesce(
            array_agg(
                case
                    when numbers[version.node] > 0 then numbers[version.node]
                    when version.node = any (same_as) then -version.node
                end
                order by message.position
            ),
            '{}'
        ),
        coalesce(
            array_agg(
                case
                    when message.node <= cardinality(before.message_ids) then before.message_ids[message.node]
                    else agui_internal.json_string_text(keys[message.node])
                end
                order by message.position
            ),
            '{}'
        ),
        coalesce(array_agg(roles[message.node] order by message.position), '{}'),
        coalesce(array_agg(texts[version.node] order by message.position), '{}')
    into result.message_nos, result.message_ids, result.roles, result.bodies
    from unnest(ordered) with ordinality as message (node, position)
    cross join lateral (select coalesce(same_as[message.node], message.node) as node) as version;

    result.message_nos := numbers[1 : in_place] || result.message_nos;
    result.message_ids := before.message_ids[1 : in_place] || result.message_ids;
    result.roles := roles[1 : in_place] || result.roles;
    result.bodies := texts[1 : in_place] || result.bodies;
    result.through_seq := before.through_seq;
    result.state := before.state;
    result.interrupts := before.interrupts;
    result.lanes := before.lanes;
    return result;
end
$function$;

comment on function agui_internal.fold_settle(
    agui_internal.fold, int, int, int[], int[], text[], int[], text[], text[], text[], text[], text[], jsonb[], int[], int[], int[], text[], int,
    text, int[], text[]
) is
    'A fold with the messages that agui_internal.fold_events has in its arrays: untouched ones as they were, the others put together again.';

revoke execute on function agui_internal.fold_settle(
    agui_internal.fold, int, int, int[], int[], text[], int[], text[], text[], text[], text[], text[], jsonb[], int[], int[], int[], text[], int,
    text, int[], text[]
) from public;
