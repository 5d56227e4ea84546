-- The end of agui_internal.fold_events: puts together again what that took apart, in the order of the conversation.
--
-- The loops over queries get only arrays that they unnest: a cursor has copies, where it takes a search to find an element.
create or replace function agui_internal.fold_settle(
    before agui_internal.fold,
    nodes agui_internal.fold_node[],
    first_node int,
    following int[],
    untouched int,
    changes agui_internal.fold_change[],
    limits agui_internal.fold_limits
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
    loaded_count constant int := cardinality(before.message_ids);
    node         agui_internal.fold_node;
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
    -- Changes of what was replaced later do not count.
    if exists (select from unnest(nodes) as replaced where replaced.content_since > 0) then
        for place in 1 .. cardinality(changes) loop
            node := nodes[changes[place].node];
            if place <= (case when changes[place].kind = 'merge' then node.metadata_since else node.content_since end) then
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
        nodes[part.node].content := case
            when nodes[part.node].content ^@ '"' then left(nodes[part.node].content, -1) || substr(part.grown, 2)
            else part.grown
        end;
    end loop;

    -- Metadata, key by key; the last one wins.
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

    -- Activities. The last patch that succeeds gives the type.
    for part in
        select
            change.node,
            array_agg(change.text order by change.ordinality) as patches,
            array_agg(change.name order by change.ordinality) as types
        from unnest(changes) with ordinality as change
        where change.kind = 'patch'
        group by change.node
    loop
        patched := agui_internal.fold_activity(nodes[part.node].content, part.patches, limits, limits.fold_fuel - result.spent);
        result.spent := result.spent + patched.spent;
        if result.spent > limits.fold_fuel then
            return result;
        end if;
        nodes[part.node].content := patched.content;
        if part.types[patched.last_applied] <> nodes[part.node].activity_type then
            nodes[part.node].head := agui_internal.fold_member(nodes[part.node].head, 'activityType', part.types[patched.last_applied]);
        end if;
    end loop;

    -- Tool calls, in the order in which their message got them, of the messages that were changed.
    for place in loaded_count + 1 .. coalesce(cardinality(nodes), 0) loop
        node := nodes[place];
        continue when node.parent is null or node.parent = 0 or nodes[node.parent].head is null;
        call_parents := array_append(call_parents, node.parent);
        call_texts := array_append(
            call_texts,
            coalesce(node.body, agui_internal.fold_close(node.head, node.content, metadata[place], null))
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
        version := coalesce(nodes[place].same_as, place);
        node := nodes[version];
        added_nos := array_append(added_nos, case when node.number > 0 then node.number when node.is_shared then -version end);
        added_ids := array_append(
            added_ids,
            case when place <= loaded_count then loaded_ids[place] else agui_internal.json_string_text(node.key) end
        );
        added_roles := array_append(added_roles, node.role);
        added_bodies := array_append(
            added_bodies,
            case
                when node.head is null then node.body
                else agui_internal.json_unguard(
                    agui_internal.fold_close(
                        node.head,
                        node.content,
                        metadata[version],
                        calls[version]
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
    agui_internal.fold, agui_internal.fold_node[], int, int[], int, agui_internal.fold_change[], agui_internal.fold_limits
) is
    'A fold with the messages that agui_internal.fold_events has as nodes: those in one piece as they were, the others put together again. The first '
    'messages, as many as are untouched, are those of before. The fuel that patches use is added; where it is used up, nothing else is changed.';

revoke execute on function agui_internal.fold_settle(
    agui_internal.fold, agui_internal.fold_node[], int, int[], int, agui_internal.fold_change[], agui_internal.fold_limits
) from public;
