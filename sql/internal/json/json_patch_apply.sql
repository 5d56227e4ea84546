-- RFC 6902 for many patches on one document, without exceptions: the fold continues when a patch
-- fails, and a block with an exception handler cannot run in a parallel query before PostgreSQL 17.
-- jsonb_set and similar functions rebuild their whole argument. So a large value that is patched
-- repeatedly is taken apart: the document becomes a tree of nodes, whose root is node 1. A node
-- holds its value in one piece, or it is opened: then its members or items are separate nodes, and
-- an operation rebuilds only the piece that it changes. At the end the tree is put back together.
-- The nodes are in arrays of this function, because PL/pgSQL changes an element of an array
-- variable in place. The state before a patch is recorded once for each thing that it changes, so
-- that a failing patch can be undone.
-- The limits are those of compaction.Limits in Go, so that a patch fails in both or in neither. The
-- size of a value is the number of bytes that jsonb prints. If sizes may matter, each node has its
-- size, and an operation updates the sizes on its path.
create or replace function agui_internal.json_patch_apply(
    inout document jsonb,
    in patches jsonb[],
    in limits agui_internal.fold_limits,
    in fuel bigint,
    in null_is_empty boolean,
    out last_applied int,
    out problem text,
    out spent bigint
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- An operation opens a large value if it is at least the n-th operation in it. Taking apart a
    -- value that is patched once does not pay.
    visits_to_open constant int := 2;
    bytes_to_open  constant int := 500;
    -- Without limits: what jsonb can certainly hold.
    max_bytes      constant bigint := coalesce(limits.document_bytes, 64 * 1024 * 1024);
    max_copied     constant bigint := coalesce(limits.patch_copied_bytes, 256 * 1024 * 1024);
    max_depth      constant int := coalesce(limits.document_depth, 1000);
    max_operations constant int := coalesce(limits.patch_operations, 2147483647);
    max_shifted    constant bigint := coalesce(limits.patch_shifted_items, 9223372036854775807);

    -- Nodes. A removed member keeps its node, without a piece and without what it was opened to.
    node_count int := 1;
    pieces     jsonb[] := array[document];
    opened     int[] := '{}'; -- what the node was opened to
    visits     int[] := '{}'; -- operations in the piece
    sizes      bigint[];      -- null: the document cannot come near its limit
    given_depth int;          -- of the original document; null: not measured
    added_depth int := 0;     -- nothing that patches have added since is deeper
    first_depth int;          -- the same before the current patch

    -- What nodes were opened to.
    opened_count int := 0;
    members      jsonb[] := '{}';           -- for an object: the node of each member
    added        jsonb[] := '{}';           -- the same for recently added members
    items        agui_internal.json_nodes[] := '{}'; -- for an array: the nodes in order
    counts       int[] := '{}';             -- for an object, if there are sizes: the number of its members

    -- What nodes were before the current patch or, if the number is negative, the items or members
    -- of an opened node.
    patch_no     int := 0;
    noted        int;
    noted_nodes  int[] := '{}';
    noted_pieces jsonb[] := '{}';
    noted_opened int[] := '{}';
    noted_sizes  bigint[] := '{}';
    noted_items  agui_internal.json_nodes[] := '{}';
    noted_counts int[] := '{}';
    node_noted   int[] := '{}'; -- the patch that recorded the node
    owner_noted  int[] := '{}';

    -- The operation, as one step or two: a value is fetched or taken from one place and added to
    -- another.
    patch     jsonb;
    operation jsonb;
    step      text;   -- the operation itself, or 'take' or 'fetch', then 'add' for one with two steps
    pointer   text;
    target    text[];
    destination text[]; -- of the second step
    value     jsonb;
    printed   text;   -- the value as text, once it was needed
    failure   text;

    -- The target and the change there.
    node    int;
    depth   int;     -- of the value, or more
    used    int;     -- tokens of the target up to the node
    token   text;    -- the token after them
    owner   int;     -- the container of that token or, at the target, of the node
    place   int;     -- items before it there
    child   int;
    rest    text[];  -- the tokens after the node
    parent  jsonb;
    parts   jsonb[];
    changed int;     -- the node that changes, and its new piece
    piece   jsonb;
    listed  int[];   -- new items of the owner
    way     int[] := '{}'; -- the nodes from the root on; the first `above` of them contain the change
    above   int;
    size    bigint;  -- of the new piece
    grown   bigint;  -- how much the nodes above grow
    grown_count int;
    copied  bigint;  -- by the current patch
    shifted bigint;
    behind  int;     -- items after the place
begin
    last_applied := 0;
    spent := 0;

    -- Without copies, a document grows at most by the size of the patches.
    size := octet_length(document::text);
    pointer := patches::text;
    if size + octet_length(pointer) > max_bytes or strpos(pointer, 'copy') > 0 then
        sizes := array[size];
    end if;

    foreach patch in array patches loop
        exit when spent > fuel;
        patch_no := patch_no + 1;
        if jsonb_typeof(patch) is distinct from 'array' then
            problem := coalesce(problem, 'the patch: it is not a JSON array of operations');
            continue;
        end if;
        if jsonb_array_length(patch) > max_operations then
            problem := coalesce(problem, format('the patch: it has more than %s operations', max_operations));
            continue;
        end if;
        noted := 0;
        if null_is_empty and pieces[1] = 'null' then
            node_noted[1] := patch_no;
            noted := 1;
            noted_nodes[1] := 1;
            noted_pieces[1] := pieces[1];
            noted_opened[1] := opened[1];
            noted_sizes[1] := sizes[1];
            pieces[1] := '{}';
            if sizes is not null then
                sizes[1] := 2;
            end if;
        end if;
        copied := 0;
        shifted := 0;
        first_depth := added_depth;

        for position in 1 .. jsonb_array_length(patch) loop
            operation := patch -> (position - 1);

            -- Read the operation.

            -- A member of the wrong type reads as text that is neither an operation nor a pointer.
            step := operation ->> 'op';
            pointer := operation ->> 'path';
            target := agui_internal.json_pointer(pointer);
            value := operation -> 'value';
            destination := null;
            printed := null;
            failure := case
                when target is null then
                    case
                        when jsonb_typeof(operation) <> 'object' then 'it is not a JSON object'
                        when operation ? 'path' then 'its path is not a JSON pointer'
                        else 'it has no path'
                    end
                when step in ('replace', 'add', 'test') then
                    case when value is null then 'it has no value' end
                when step = 'remove' then
                    null
                when step in ('move', 'copy') then
                    case
                        when agui_internal.json_pointer(operation ->> 'from') is not null then null
                        when operation ? 'from' then 'its from is not a JSON pointer'
                        else 'it has no from'
                    end
                when operation ? 'op' then
                    'there is no such operation'
                else
                    'it has no op'
            end;
            if failure is null and step in ('move', 'copy') then
                destination := target;
                pointer := operation ->> 'from';
                target := agui_internal.json_pointer(pointer);
                -- What is moved into itself only has to exist.
                step := case when step = 'move' and destination[: cardinality(target)] <> target then 'take' else 'fetch' end;
            end if;

            while failure is null loop
                -- Go down to the target, or as far as there are nodes.

                node := 1;
                used := 0;
                owner := null;
                way[1] := 1;
                foreach token in array target loop
                    if opened[node] is null then
                        exit when pg_column_size(pieces[node]) < bytes_to_open;
                        visits[node] := coalesce(visits[node], 0) + 1;
                        exit when visits[node] < visits_to_open or jsonb_typeof(pieces[node]) not in ('object', 'array');

                        opened_count := opened_count + 1;
                        if jsonb_typeof(pieces[node]) = 'object' then
                            select
                                coalesce(array_agg(member.value), '{}'),
                                jsonb_object(
                                    coalesce(array_agg(member.key), '{}'),
                                    coalesce(array_agg((node_count + member.position)::text), '{}')
                                )
                            into parts, piece
                            from jsonb_each(pieces[node]) with ordinality as member (key, value, position);
                            members[opened_count] := piece;
                            if sizes is not null then
                                counts[opened_count] := cardinality(parts);
                            end if;
                        else
                            parts := array(select jsonb_array_elements(pieces[node]));
                            items[opened_count] := array(
                                select generate_series(node_count + 1, node_count + cardinality(parts))
                            );
                        end if;
                        foreach piece in array parts loop
                            node_count := node_count + 1;
                            pieces[node_count] := piece;
                            if sizes is not null then
                                sizes[node_count] := octet_length(piece::text);
                            end if;
                        end loop;
                        opened[node] := opened_count;
                        pieces[node] := null;
                    end if;

                    owner := opened[node];
                    if members[owner] is not null then
                        child := coalesce(members[owner] ->> token, added[owner] ->> token);
                        exit when child is null or pieces[child] is null and opened[child] is null;
                    else
                        place := case when token ~ '^(0|[1-9][0-9]{0,8})$' then token::int end;
                        child := (items[owner])[place + 1];
                        exit when child is null;
                    end if;
                    node := child;
                    used := used + 1;
                    way[used + 1] := node;
                end loop;
                above := used;

                -- Change the target.

                changed := null;
                size := null;
                if step in ('add', 'replace') then
                    -- A copied value is at most as deep as the document, so the document is
                    -- measured, once.
                    if printed is not null and sizes is not null and pg_column_size(value) > 400 and given_depth is null then
                        given_depth := agui_internal.json_depth(document::text);
                    end if;
                    depth := case
                        when jsonb_typeof(value) not in ('object', 'array') then 0
                        when sizes is null or pg_column_size(value) <= 400 then pg_column_size(value) / 8
                        when printed is null then agui_internal.json_depth(value::text)
                        else greatest(given_depth, added_depth)
                    end;
                    if cardinality(target) + depth > max_depth then
                        depth := agui_internal.json_depth(coalesce(printed, value::text));
                    end if;
                    if cardinality(target) + depth > max_depth then
                        failure := 'the document would be too deep';
                        exit;
                    end if;
                    added_depth := greatest(added_depth, cardinality(target) + depth);
                end if;

                case
                    -- The node is the target.

                    when used = cardinality(target) then
                        if step in ('take', 'fetch') then
                            value := agui_internal.json_node_value(node, pieces, opened, members, added, items);
                            -- Putting the value together takes longer than returning it, so it
                            -- stays in one piece unless an undo would need its parts.
                            if noted = 0 and opened[node] is not null then
                                pieces[node] := value;
                                opened[node] := null;
                                visits[node] := 0;
                            end if;
                        elsif step = 'test' then
                            if coalesce(pieces[node], agui_internal.json_node_value(node, pieces, opened, members, added, items)) <> value then
                                failure := 'the value there is another one';
                            end if;
                        end if;
                        if step in ('take', 'remove') and items[owner] is not null then
                            listed := items[owner];
                            behind := cardinality(listed) - place - 1;
                            shifted := shifted + behind;
                            spent := spent + case when behind <= 500 then behind else cardinality(listed) end;
                            listed := listed[: place] || listed[place + 2 :];
                        elsif step = 'add' and items[owner] is not null then
                            node_count := node_count + 1;
                            changed := node_count;
                            piece := value;
                            listed := items[owner];
                            behind := cardinality(listed) - place;
                            shifted := shifted + behind;
                            spent := spent + case when behind <= 500 then behind else cardinality(listed) end;
                            listed := listed[: place] || changed || listed[place + 1 :];
                        elsif step in ('take', 'remove', 'replace', 'add') then
                            changed := node;
                            piece := case
                                when step in ('replace', 'add') then value
                                when owner is null then 'null'
                            end;
                            visits[changed] := 0;
                        end if;

                    -- The node is opened, and the member or item that the target names does not
                    -- exist.

                    when opened[node] is not null then
                        if step in ('take', 'fetch') then
                            failure := 'nothing is at its from';
                        elsif step <> 'add' then
                            failure := 'nothing is at the path';
                        elsif used + 1 < cardinality(target) then
                            failure := 'the parent of the path does not exist';
                        elsif items[owner] is not null and token not in ('-', cardinality(items[owner])::text) then
                            failure := 'the array has no such position';
                        else
                            above := used + 1;
                            changed := case when items[owner] is null then child end;
                            if changed is null then
                                node_count := node_count + 1;
                                changed := node_count;
                                if items[owner] is null then
                                    -- An object that grows by many members is rebuilt once for many
                                    -- of them.
                                    added[owner] := coalesce(added[owner], '{}') || jsonb_build_object(token, changed);
                                    if pg_column_size(added[owner]) > 2000 then
                                        members[owner] := members[owner] || added[owner];
                                        added[owner] := null;
                                    end if;
                                else
                                    listed := items[owner] || changed;
                                end if;
                            end if;
                            piece := value;
                            visits[changed] := 0;
                        end if;

                    -- The node is neither an object nor an array.

                    when jsonb_typeof(pieces[node]) not in ('object', 'array') then
                        failure := case
                            when step in ('take', 'fetch') then 'nothing is at its from'
                            when step <> 'add' then 'nothing is at the path'
                            when used + 1 < cardinality(target) then 'the parent of the path does not exist'
                            else 'the parent of the path is neither an object nor an array'
                        end;

                    -- The target is in the piece of the node, or does not exist.

                    else
                        rest := target[used + 1 :];
                        piece := pieces[node];
                        if step = 'add' then
                            parent := case
                                when cardinality(rest) = 1 then piece
                                else agui_internal.json_pointer_get(piece, rest[: cardinality(rest) - 1])
                            end;
                            token := rest[cardinality(rest)];
                            case coalesce(jsonb_typeof(parent), 'nothing')
                                when 'object' then
                                    if sizes is not null and not parent ? token then
                                        size := sizes[node] + octet_length(coalesce(printed, value::text)) + octet_length(to_jsonb(token)::text) + 2
                                            + case when parent <> '{}' then 2 else 0 end;
                                    end if;
                                    if sizes[1] + size - sizes[node] > max_bytes then
                                        failure := 'the document would be too large';
                                    else
                                        changed := node;
                                        piece := jsonb_set(piece, rest, value);
                                    end if;
                                when 'array' then
                                    if token = '-' then
                                        token := jsonb_array_length(parent);
                                    end if;
                                    if token ~ '^(0|[1-9][0-9]{0,8})$' and token::int <= jsonb_array_length(parent) then
                                        behind := jsonb_array_length(parent) - token::int;
                                        shifted := shifted + behind;
                                        spent := spent + case when behind <= 500 then behind else jsonb_array_length(parent) end;
                                        -- Check the size before creating a value that would be too
                                        -- large.
                                        if sizes is not null then
                                            size := sizes[node] + octet_length(coalesce(printed, value::text))
                                                + case when jsonb_array_length(parent) > 0 then 2 else 0 end;
                                        end if;
                                        if sizes[1] + size - sizes[node] > max_bytes then
                                            failure := 'the document would be too large';
                                        else
                                            changed := node;
                                            piece := jsonb_insert(piece, rest[: cardinality(rest) - 1] || token, value);
                                        end if;
                                    else
                                        failure := 'the array has no such position';
                                    end if;
                                when 'nothing' then
                                    failure := 'the parent of the path does not exist';
                                else
                                    failure := 'the parent of the path is neither an object nor an array';
                            end case;
                        else
                            -- Usually there is one token left.
                            parent := case
                                when cardinality(rest) = 1 and jsonb_typeof(piece) = 'object' then piece -> token
                                else agui_internal.json_pointer_get(piece, rest)
                            end;
                            if parent is null then
                                failure := case
                                    when step in ('take', 'fetch') then 'nothing is at its from'
                                    else 'nothing is at the path'
                                end;
                            elsif step = 'replace' then
                                changed := node;
                                piece := jsonb_set(piece, rest, value);
                            elsif step = 'test' then
                                if parent <> value then
                                    failure := 'the value there is another one';
                                end if;
                            else
                                if step in ('take', 'fetch') then
                                    value := parent;
                                end if;
                                if step in ('take', 'remove') then
                                    changed := node;
                                    parent := case
                                        when cardinality(rest) = 1 then piece
                                        else agui_internal.json_pointer_get(piece, rest[: cardinality(rest) - 1])
                                    end;
                                    if jsonb_typeof(parent) = 'array' then
                                        behind := jsonb_array_length(parent) - rest[cardinality(rest)]::int - 1;
                                        shifted := shifted + behind;
                                        spent := spent + case when behind <= 500 then behind else jsonb_array_length(parent) end;
                                    end if;
                                    piece := piece #- rest;
                                end if;
                            end if;
                        end if;
                end case;

                if shifted > max_shifted then
                    failure := 'the patch moves too many array items';
                end if;

                -- Update the sizes.

                grown := 0;
                if sizes is not null and failure is null then
                    grown_count := 0;
                    if changed is not null and size is null then
                        size := octet_length(
                            case
                                when step not in ('add', 'replace') or used < cardinality(target) and opened[node] is null then piece::text
                                else coalesce(printed, value::text)
                            end
                        );
                    end if;
                    if listed is not null then
                        grown := case
                            when changed is null then -sizes[node] - case when cardinality(listed) > 0 then 2 else 0 end
                            else size + case when cardinality(listed) > 1 then 2 else 0 end
                        end;
                    elsif changed is not null then
                        grown := coalesce(size, 0) - case
                            when pieces[changed] is null and opened[changed] is null then 0
                            else sizes[changed]
                        end;
                        if piece is null then
                            grown_count := -1;
                        elsif pieces[changed] is null and opened[changed] is null then
                            grown_count := 1;
                        end if;
                        if grown_count <> 0 then
                            grown := grown + grown_count * (
                                octet_length(to_jsonb(token)::text) + 2
                                + case when counts[owner] + least(grown_count, 0) > 0 then 2 else 0 end
                            );
                        end if;
                    end if;
                    if step not in ('take', 'fetch') and sizes[1] + grown > max_bytes then
                        failure := 'the document would be too large';
                    end if;
                end if;

                -- Record the old state, then change it.

                if failure is not null then
                    changed := null;
                    listed := null;
                    grown := 0;
                end if;
                if grown <> 0 and above > 0 then
                    foreach child in array way[: above] loop
                        if node_noted[child] is distinct from patch_no then
                            node_noted[child] := patch_no;
                            noted := noted + 1;
                            noted_nodes[noted] := child;
                            noted_pieces[noted] := pieces[child];
                            noted_opened[noted] := opened[child];
                            noted_sizes[noted] := sizes[child];
                        end if;
                        sizes[child] := sizes[child] + grown;
                    end loop;
                    if grown_count <> 0 then
                        if owner_noted[owner] is distinct from patch_no then
                            owner_noted[owner] := patch_no;
                            noted := noted + 1;
                            noted_nodes[noted] := -owner;
                            noted_counts[noted] := counts[owner];
                        end if;
                        counts[owner] := counts[owner] + grown_count;
                    end if;
                end if;
                if listed is not null then
                    if owner_noted[owner] is distinct from patch_no then
                        owner_noted[owner] := patch_no;
                        noted := noted + 1;
                        noted_nodes[noted] := -owner;
                        noted_items[noted] := items[owner];
                    end if;
                    items[owner] := listed;
                    listed := null;
                end if;
                if changed is not null then
                    -- Nothing comes after the only step of a patch.
                    if (step = 'take' or jsonb_array_length(patch) > 1) and node_noted[changed] is distinct from patch_no then
                        node_noted[changed] := patch_no;
                        noted := noted + 1;
                        noted_nodes[noted] := changed;
                        noted_pieces[noted] := pieces[changed];
                        noted_opened[noted] := opened[changed];
                        noted_sizes[noted] := sizes[changed];
                    end if;
                    pieces[changed] := piece;
                    opened[changed] := null;
                    if sizes is not null then
                        sizes[changed] := size;
                    end if;
                end if;

                -- The next step.

                exit when failure is not null or step not in ('take', 'fetch');
                if step = 'fetch' and operation ->> 'op' = 'move' then
                    failure := case
                        when target <> destination then 'a value cannot be moved into itself'
                        when sizes[1] > max_bytes then 'the document would be too large'
                    end;
                    exit;
                end if;
                printed := value::text;
                copied := copied + octet_length(printed);
                spent := spent + 4 * octet_length(printed);
                if copied > max_copied then
                    failure := 'the patch copies too much';
                end if;
                step := 'add';
                target := destination;
            end loop;

            if failure is not null then
                -- Without the path, which may contain names of people: refused patches appear in
                -- the log of the server.
                failure := concat_ws(' ', 'operation', position, substring(operation ->> 'op' from '^(?:add|remove|replace|move|copy|test)$')) || ': ' || failure;
                exit;
            end if;
        end loop;

        if failure is null then
            last_applied := patch_no;
            continue;
        end if;

        while noted > 0 loop
            node := noted_nodes[noted];
            if node > 0 then
                pieces[node] := noted_pieces[noted];
                opened[node] := noted_opened[noted];
                if sizes is not null then
                    sizes[node] := noted_sizes[noted];
                end if;
            elsif members[-node] is not null then
                counts[-node] := noted_counts[noted];
            else
                items[-node] := noted_items[noted];
            end if;
            noted := noted - 1;
        end loop;

        added_depth := first_depth;
        problem := coalesce(problem, failure);
        failure := null;
    end loop;

    document := agui_internal.json_node_value(1, pieces, opened, members, added, items);
end
$function$;

comment on function agui_internal.json_patch_apply(jsonb, jsonb[], agui_internal.fold_limits, bigint, boolean) is
    'Applies RFC 6902 patches to a document, one after the other. A patch with a failing operation '
    'has no effect. Returns the document, the number of the last patch that was applied (0: none), '
    'the problem of the first one that was not, and the fuel used: 4 for each byte that is copied '
    'or moved, 1 for each array item that is shifted (for all items of the array if the place is '
    'far from its end). A patch that exceeds a limit fails too (limits null: only those of jsonb). '
    'When more than fuel is used (null: no limit), the remaining patches are skipped. '
    'null_is_empty: if the document is null, a patch finds an empty object.';

revoke execute on function agui_internal.json_patch_apply(jsonb, jsonb[], agui_internal.fold_limits, bigint, boolean) from public;
