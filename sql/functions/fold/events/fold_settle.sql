-- The end of agui_internal.fold_events: puts the nodes back together, in the order of the
-- conversation.
-- Loops over queries get only arrays that they unnest: a cursor has copies in which finding an
-- element takes a search.
create or replace function agui_internal.fold_settle(
    fold agui_internal.fold,
    nodes agui_internal.fold_node[],
    bodies text[],
    heads text[],
    contents text[],
    large text[],
    changes agui_internal.fold_change[],
    first_node int,
    untouched int,
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
    loaded_count constant int := cardinality(fold.bodies);
    part         record;
    patched      record;
    node         int;
    metadata     text[];
    calls        text[];
begin
    -- Changes of something that was replaced later do not count.
    if exists (select from unnest(changes) as change where change.kind in ('new message', 'new content')) then
        <<replaced>>
        declare
            new_message boolean[];
            new_content boolean[];
        begin
            for place in reverse cardinality(changes) .. 1 loop
                node := changes[place].node;
                if changes[place].kind in ('new message', 'new content') then
                    new_content[node] := true;
                    new_message[node] := new_message[node] or changes[place].kind = 'new message';
                elsif (case when changes[place].kind = 'merge' then new_message[node] else new_content[node] end) then
                    changes[place].kind := null;
                end if;
            end loop;
        end replaced;
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
        patched := agui_internal.fold_activity(contents[part.node], part.patches, limits, limits.fold_fuel - fold.spent);
        fold.spent := fold.spent + patched.spent;
        if fold.spent > limits.fold_fuel then
            return fold;
        end if;
        contents[part.node] := patched.content;
        if part.types[patched.last_applied] <> nodes[part.node].activity_type then
            heads[part.node] := agui_internal.fold_member(heads[part.node], 'activityType', part.types[patched.last_applied]);
        end if;
    end loop;

    -- Tool calls of changed messages, in the order in which the message got them.
    <<calls>>
    declare
        parents int[] := '{}';
        texts   text[] := '{}';
    begin
        for place in loaded_count + 1 .. cardinality(nodes) loop
            node := nodes[place].parent;
            continue when node is null or node = 0 or heads[node] is null;
            parents := array_append(parents, node);
            texts := array_append(
                texts,
                coalesce(
                    bodies[place],
                    agui_internal.fold_close(agui_internal.fold_fill(heads[place], large), contents[place], metadata[place], null)
                )
            );
        end loop;
        for part in
            select call.parent, '[' || string_agg(call.text, ',' order by call.position) || ']' as list
            from unnest(parents, texts) with ordinality as call (parent, text, position)
            group by call.parent
        loop
            calls[part.parent] := part.list;
        end loop;
    end calls;

    -- Messages.
    <<messages>>
    declare
        message agui_internal.fold_node;
        first   int;
        nos     int[] := '{}';
        ids     text[] := '{}';
        roles   text[] := '{}';
        texts   text[] := '{}';
    begin
        node := case when untouched > 0 then nodes[untouched].following else first_node end;
        while node is not null loop
            -- All places of a message have what the first one has.
            first := coalesce(nodes[node].same_as, node);
            message := nodes[first];
            nos := array_append(nos, case when message.number > 0 then message.number when message.is_shared then -first end);
            ids := array_append(
                ids, case when node <= loaded_count then fold.message_ids[node] else agui_internal.json_string_text(message.key) end
            );
            roles := array_append(roles, message.role);
            texts := array_append(
                texts,
                case
                    when heads[first] is null then bodies[first]
                    else agui_internal.json_unguard(
                        agui_internal.fold_close(
                            agui_internal.fold_fill(heads[first], large), contents[first], metadata[first], calls[first]
                        )
                    )
                end
            );
            node := nodes[node].following;
        end loop;

        fold.message_nos := fold.message_nos[1 : untouched] || nos;
        fold.message_ids := fold.message_ids[1 : untouched] || ids;
        fold.roles := fold.roles[1 : untouched] || roles;
        fold.bodies := fold.bodies[1 : untouched] || texts;
    end messages;
    return fold;
end
$function$;

comment on function agui_internal.fold_settle(
    agui_internal.fold, agui_internal.fold_node[], text[], text[], text[], text[], agui_internal.fold_change[], int, int,
    agui_internal.fold_limits
) is
    'Returns the fold with the messages that agui_internal.fold_events has as nodes: nodes in one '
    'piece unchanged, the others put back together. The first `untouched` messages are those that '
    'the fold has. Adds the fuel that patches use; if it is exhausted, nothing else is changed.';

revoke execute on function agui_internal.fold_settle(
    agui_internal.fold, agui_internal.fold_node[], text[], text[], text[], text[], agui_internal.fold_change[], int, int,
    agui_internal.fold_limits
) from public;
