-- RFC 6902 on JSON text: many patches on one document, for folds and for agui.json_patch.
--
-- A patch is applied whole or not at all. A failing one has no effect, and the fold continues.
-- jsonb_set rebuilds the whole document, so folds collect patches, and json_patch_apply applies
-- them together: it takes the document apart as far as patches reach, changes the small parts, and
-- puts it together once.
--
--    node      1            2            3            4            5
--           ┌────────────┬────────────┬────────────┬────────────┬────────────┐
--    pieces │            │ "draft"    │            │ {"n":1}    │ {"n":2}    │ a value,
--    opened │ 1          │            │ 2          │            │            │ or opened to:
--           └────────────┴────────────┴────────────┴────────────┴────────────┘
--              members[1] = {"title":2,"items":3}      items[2] = {4,5}
--
-- An operation has the phases read, descend, change, measure, note. `move` and `copy` are two
-- steps: take or fetch a value, then add it.
--
-- - The second operation in a value of 500 bytes or more opens it.
-- - What a patch changes is noted once, so that it can be undone. There is no exception handler,
--   which no parallel query could have before PostgreSQL 17.
-- - The size of a value is what jsonb prints for it and 32 bytes for each element (json_size), in
--   SQL and in Go. While PostgreSQL makes jsonb, an empty object takes 500 bytes, so the bytes
--   alone would not bound memory. Sizes are kept only if the document and the patches together
--   could reach the limit.
-- - agui.json_patch and its aggregate have the limits of jsonb itself (limits_of_jsonb).
-- - Hot helpers have no SET clause: every name in them is qualified, operators too.

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_patch_agg_result(patches jsonb[])
returns jsonb
language sql
immutable
strict
parallel safe
return agui_internal.json_patch_all('{}', patches);

comment on function agui_internal.json_patch_agg_result is
    'The final function of agui.json_patch_agg: applies the collected patches.';

create or replace function agui_internal.json_patch_all(doc jsonb, patches jsonb[])
returns jsonb
language sql
immutable
strict
parallel safe
return (agui_internal.json_patch_apply(doc, patches, agui_internal.limits_of_jsonb(), null, false)).document;

comment on function agui_internal.json_patch_all is
    'The document after RFC 6902 patches in their order, as a client of the event stream applies state deltas: each whole or, when one '
    'of its operations fails, not at all. Much faster than agui.json_patch one by one. '
    'Example: select agui_internal.json_patch_all(''{"n": 0}'', array_agg(patch order by seq)) from patches';

-- RFC 6902 for many patches on one document, without exceptions: the fold continues when a patch
-- fails, and a block with an exception handler cannot run in a parallel query before PostgreSQL 17.
-- jsonb_set and similar functions rebuild their whole argument. So a large value that is patched
-- repeatedly is taken apart: the document becomes a tree of nodes, whose root is node 1. A node
-- holds its value in one piece, or it is opened: then its members or items are separate nodes, and
-- an operation rebuilds only the piece that it changes. At the end the tree is put back together.
-- The nodes are in arrays of this function, because PL/pgSQL changes an element of an array
-- variable in place. The state before a patch is noted once for each thing that it changes, so that
-- a failing patch can be undone.
-- An operation is executed in phases: read, descend, change, measure, note. Its target is a node,
-- or a member or item that an opened node lacks, or inside the piece of a node.
-- The limits are those of compaction.Limits in Go, so that a patch fails in both or in neither. The
-- size of a value is agui_internal.json_size of what jsonb prints. If sizes may matter, each node has
-- its size, and an operation updates the sizes on its path.
create or replace function agui_internal.json_patch_apply(
    inout document jsonb,
    in patches jsonb[],
    in limits agui_internal.fold_limits,
    in fuel bigint,
    in null_is_empty boolean,
    in is_unread boolean default false,
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

    -- Nodes. A removed member keeps its node, without a piece and without what it was opened to.
    node_count int := 1;
    pieces     jsonb[] := array[document];
    opened     int[] := '{}'; -- what the node was opened to
    visits     int[] := '{}'; -- operations in the piece
    sizes      bigint[];      -- null: the document cannot come near its limit
    given_size bigint := octet_length(document::text);
    element_bytes constant int := agui_internal.json_element_bytes();
    given_depth int;          -- of the original document; null: not measured
    added_depth int := 0;     -- nothing that patches have added since is deeper

    -- What nodes were opened to.
    opened_count int := 0;
    members      jsonb[] := '{}';           -- for an object: the node of each member
    added        jsonb[] := '{}';           -- the same for recently added members
    items        agui_internal.json_nodes[] := '{}'; -- for an array: the nodes in order
    counts       int[] := '{}';             -- for an object, if there are sizes: the number of its members

    -- What changed things were before the current patch.
    notes        agui_internal.json_note[] := '{}';
    noted_pieces jsonb[] := '{}';
    noted_items  agui_internal.json_nodes[] := '{}';
    node_noted   int[] := '{}'; -- the patch that noted the node
    owner_noted  int[] := '{}';

    -- The patch.
    patch    jsonb;
    patch_no int := 0;

    -- The way to the target, and the new piece of what changes.
    way        int[] := array[1]; -- the nodes from the root on
    token      text;
    place      int;  -- items before it in the container
    child      int;
    piece      jsonb;
    depth      int;  -- of the value, or more
    item_count int;
begin
    last_applied := 0;
    spent := 0;

    -- Without copies, a document grows at most by the size of the patches. A byte counts most if every
    -- second one begins an element.
    declare
        printed    constant text := array_to_string(patches, ',');
        most_bytes constant bigint := octet_length(printed)::bigint * (1 + element_bytes / 2);
        has_copy   constant boolean := strpos(printed, 'copy') > 0;
    begin
        if given_size * (1 + element_bytes / 2) + most_bytes > limits.document_bytes or has_copy then
            given_size := agui_internal.json_size(document::text);
            if given_size + most_bytes > limits.document_bytes or has_copy then
                sizes := array[given_size];
            end if;
        end if;
    end;

    -- A statement costs about as much as what it evaluates, and a variable of a block is null at no cost. So what is rarely needed is null
    -- until then.
    <<patches>>
    foreach patch in array patches loop
    declare
        count       constant int := case when jsonb_typeof(patch) = 'array' then jsonb_array_length(patch) end;
        failure     text;
        copied      bigint;
        shifted     bigint;
        noted       int;
        is_emptied  boolean; -- the document was null
        first_depth constant int := added_depth;
    begin
        patch_no := patch_no + 1;
        if spent > fuel or is_unread and last_applied = 0 or (count <= limits.patch_operations) is not true then
            exit patches when spent > fuel;
            failure := case
                when count is null then 'the patch: it is not a JSON array of operations'
                when is_unread and last_applied = 0 and (patch #>> '{0,path}' = '' and patch #>> '{0,op}' in ('add', 'replace', 'remove')) is not true
                    then 'the document has too many elements'
                when count > limits.patch_operations then format('the patch: it has more than %s operations', limits.patch_operations)
            end;
            if failure is not null then
                problem := coalesce(problem, failure);
                continue patches;
            end if;
        end if;

        if null_is_empty and pieces[1] = 'null' then
            is_emptied := true;
            pieces[1] := '{}';
            if sizes is not null then
                sizes[1] := agui_internal.json_size('{}');
            end if;
        end if;

        <<operations>>
        for position in 1 .. count loop
        declare
            -- The operation, as one step or two: a value is fetched or taken from one place and added to another. A member of the wrong
            -- type reads as text that is neither an operation nor a pointer.
            operation   constant jsonb := patch -> (position - 1);
            step        text   := operation ->> 'op'; -- or 'take' or 'fetch', then 'add' for one with two steps
            pointer     text   := operation ->> 'path';
            target      text[] := agui_internal.json_pointer(pointer);
            value       jsonb  := operation -> 'value';
            destination text[]; -- of the second step
            printed     text;   -- the value as text, once it was needed
            value_size  bigint; -- the same
        begin
            if (step in ('replace', 'add') and target is not null and value is not null) is not true then
                failure := agui_internal.json_operation_problem(operation, step, target, value);
                if failure is null and step in ('move', 'copy') then
                    destination := target;
                    pointer := operation ->> 'from';
                    target := agui_internal.json_pointer(pointer);
                    -- What is moved into itself only has to exist.
                    step := case when step = 'move' and destination[: cardinality(target)] <> target then 'take' else 'fetch' end;
                end if;
            end if;

            <<steps>>
            while failure is null loop
            declare
                node    int := 1; -- the target or, if it is in a piece or does not exist, the last on the way
                used    int := 0; -- nodes above the change, which the first tokens lead to
                owner   int;      -- the container of the next token or, at the target, of the node
                changed int;      -- the node that changes
                listed  int[];    -- new items of the owner
                behind  int;      -- items after the place of one that comes or goes
                size    bigint;   -- of the new piece
                grown   bigint;   -- how much the nodes above grow; null: not at all
                grown_count int;  -- and by how many members the owner
                is_inside boolean; -- the target is inside the piece of the node
            begin
                -- Descend to the target, or as far as there are nodes.

                foreach token in array target loop
                    owner := opened[node];
                    if owner is null then
                        exit when pg_column_size(pieces[node]) < bytes_to_open;
                        visits[node] := coalesce(visits[node], 0) + 1;
                        exit when visits[node] < visits_to_open or jsonb_typeof(pieces[node]) not in ('object', 'array');
                        <<open>>
                        declare
                            apart record := agui_internal.json_take_apart(pieces[node], node_count);
                        begin
                            opened_count := opened_count + 1;
                            owner := opened_count;
                            opened[node] := owner;
                            pieces[node] := null;
                            members[owner] := apart.members;
                            items[owner] := apart.items;
                            counts[owner] := cardinality(apart.pieces);
                            foreach piece in array apart.pieces loop
                                node_count := node_count + 1;
                                pieces[node_count] := piece;
                                if sizes is not null then
                                    sizes[node_count] := agui_internal.json_size(piece::text);
                                end if;
                            end loop;
                        end open;
                    end if;

                    child := case
                        when items[owner] is null then coalesce(members[owner] ->> token, added[owner] ->> token)::int
                        else (items[owner])[agui_internal.json_index(token) + 1]
                    end;
                    exit when child is null or pieces[child] is null and opened[child] is null;
                    node := child;
                    used := used + 1;
                    if sizes is not null then
                        way[used + 1] := node;
                    end if;
                end loop;

                -- Check how deep the document becomes.

                -- A level takes 8 bytes.
                if step in ('add', 'replace') and (sizes is not null or cardinality(target) + pg_column_size(value) / 8 > limits.document_depth) then
                    depth := case
                        when jsonb_typeof(value) not in ('object', 'array') then 0
                        when sizes is null or pg_column_size(value) <= 400 then pg_column_size(value) / 8
                        when printed is null then agui_internal.json_depth(value::text)
                        else greatest(given_depth, added_depth)
                    end;
                    if cardinality(target) + depth > limits.document_depth then
                        depth := agui_internal.json_depth(coalesce(printed, value::text));
                        if cardinality(target) + depth > limits.document_depth then
                            failure := 'the document would be too deep';
                            exit steps;
                        end if;
                    end if;
                    added_depth := greatest(added_depth, cardinality(target) + depth);
                end if;

                <<change>>
                begin
                    -- The node is the target.

                    if used = cardinality(target) then
                        if step in ('take', 'fetch') then
                            value := agui_internal.json_node_value(node, pieces, opened, members, added, items);
                            value_size := sizes[node];
                            -- Putting the value together takes longer than returning it, so it
                            -- stays in one piece unless an undo would need its parts.
                            if noted is null and opened[node] is not null then
                                pieces[node] := value;
                                opened[node] := null;
                                visits[node] := 0;
                            end if;
                            exit change when step = 'fetch';
                        elsif step = 'test' then
                            if coalesce(pieces[node], agui_internal.json_node_value(node, pieces, opened, members, added, items)) <> value then
                                failure := 'the value there is another one';
                            end if;
                            exit change;
                        end if;
                        if step = 'replace' or items[owner] is null then
                            changed := node;
                            piece := case when step in ('replace', 'add') then value when owner is null then 'null' end;
                            visits[node] := 0;
                            exit change;
                        end if;
                        listed := items[owner];
                        item_count := cardinality(listed);
                        place := agui_internal.json_index(token);
                        if step = 'add' then
                            node_count := node_count + 1;
                            changed := node_count;
                            piece := value;
                            behind := item_count - place;
                            listed := listed[: place] || changed || listed[place + 1 :];
                        else
                            behind := item_count - place - 1;
                            listed := listed[: place] || listed[place + 2 :];
                        end if;
                        exit change;
                    end if;

                    -- The node is opened, and the member or item that the target names does not
                    -- exist.

                    if opened[node] is not null then
                        failure := agui_internal.json_place_problem(step, case
                            when used + 1 < cardinality(target) then null
                            when items[owner] is null or token in ('-', cardinality(items[owner])::text) then 'object'
                            else 'array'
                        end);
                        exit change when failure is not null;
                        used := used + 1;
                        changed := child;  -- of a member that was removed
                        if changed is null then
                            node_count := node_count + 1;
                            changed := node_count;
                            if items[owner] is not null then
                                listed := items[owner] || changed;
                            else
                                -- An object that grows by many members is rebuilt once for many of
                                -- them.
                                added[owner] := coalesce(added[owner], '{}') || jsonb_build_object(token, changed);
                                if pg_column_size(added[owner]) > 2000 then
                                    members[owner] := members[owner] || added[owner];
                                    added[owner] := null;
                                end if;
                            end if;
                        end if;
                        piece := value;
                        visits[changed] := 0;
                        exit change;
                    end if;

                    -- The target is in the piece of the node, or does not exist. Usually it is a member that is replaced, and nothing
                    -- that could fail comes after that.

                    if step = 'replace' and position = count and sizes is null and used + 1 = cardinality(target)
                        and jsonb_typeof(pieces[node]) = 'object' and pieces[node] ? token
                    then
                        pieces[node] := jsonb_set(pieces[node], array[token], value);
                        exit steps;
                    end if;

                    <<inside>>
                    declare
                        rest   text[] := target[used + 1 :];
                        length int := cardinality(rest);
                        parent jsonb;  -- of the target
                        kind   text;
                        found  jsonb;
                    begin
                        is_inside := true;
                        piece := pieces[node];
                        if jsonb_typeof(piece) not in ('object', 'array') then
                            failure := agui_internal.json_place_problem(step, case when length = 1 then 'scalar' end);
                            exit change;
                        end if;

                        if step <> 'add' then
                            -- Usually there is one token left.
                            found := case
                                when length = 1 and jsonb_typeof(piece) = 'object' then piece -> token
                                else agui_internal.json_pointer_get(piece, rest)
                            end;
                            if found is null then
                                failure := agui_internal.json_place_problem(step, null);
                            elsif step = 'replace' then
                                changed := node;
                                piece := jsonb_set(piece, rest, value);
                            elsif step = 'test' and found <> value then
                                failure := 'the value there is another one';
                            end if;
                            exit change when found is null or step in ('replace', 'test');
                            if step in ('take', 'fetch') then
                                value := found;
                            end if;
                            exit change when step = 'fetch';
                        end if;

                        parent := case when length = 1 then piece else agui_internal.json_pointer_get(piece, rest[: length - 1]) end;
                        kind := jsonb_typeof(parent);
                        item_count := case when kind = 'array' then jsonb_array_length(parent) end;
                        if step in ('take', 'remove') then
                            changed := node;
                            behind := item_count - agui_internal.json_index(rest[length]) - 1;
                            piece := piece #- rest;
                            exit change;
                        end if;

                        token := rest[length];
                        place := case when token = '-' then item_count else agui_internal.json_index(token) end;
                        if (kind = 'object' or place <= item_count) is not true then
                            failure := agui_internal.json_place_problem(step, kind);
                            exit change;
                        end if;
                        behind := item_count - place;
                        -- Check the size before creating a value that would be too large.
                        if sizes is not null and (kind = 'array' or not parent ? token) then
                            value_size := coalesce(value_size, agui_internal.json_size(value::text));
                            size := sizes[node] + value_size
                                + case when kind = 'object' then octet_length(to_jsonb(token)::text) + 2 else 0 end
                                + case when parent in ('{}', '[]') then 0 else 2 + element_bytes end;
                            if sizes[1] + size - sizes[node] > limits.document_bytes then
                                failure := 'the document would be too large';
                                exit change;
                            end if;
                        end if;
                        changed := node;
                        piece := case kind
                            when 'object' then jsonb_set(piece, rest, value)
                            else jsonb_insert(piece, rest[: length - 1] || place::text, value)
                        end;
                    end inside;
                end change;

                if behind is not null then
                    shifted := coalesce(shifted, 0) + behind;
                    spent := spent + case when behind <= 500 then behind else item_count end;
                    if shifted > limits.patch_shifted_items then
                        failure := 'the patch moves too many array items';
                    end if;
                end if;

                -- Measure how much the document grows.

                if sizes is not null and failure is null then
                    if changed is not null and size is null then
                        size := case
                            when is_inside is null and step <> 'take' and value_size is not null then value_size
                            else agui_internal.json_size(piece::text)
                        end;
                    end if;
                    if listed is not null then
                        grown := case
                            when changed is null then -sizes[node] - case when cardinality(listed) > 0 then 2 + element_bytes else 0 end
                            else size + case when cardinality(listed) > 1 then 2 + element_bytes else 0 end
                        end;
                    elsif changed is not null then
                        if pieces[changed] is null and opened[changed] is null then
                            grown := size;
                            grown_count := 1;
                        else
                            grown := coalesce(size, 0) - sizes[changed];
                            grown_count := case when piece is null then -1 else 0 end;
                        end if;
                        if grown_count <> 0 then
                            grown := grown + grown_count * (
                                octet_length(to_jsonb(token)::text) + 2
                                + case when counts[owner] + least(grown_count, 0) > 0 then 2 + element_bytes else 0 end
                            );
                        end if;
                    end if;
                    if step not in ('take', 'fetch') and sizes[1] + coalesce(grown, 0) > limits.document_bytes then
                        failure := 'the document would be too large';
                    end if;
                end if;
                exit steps when failure is not null;

                -- Note what changes, unless nothing comes after the change that could fail.

                if step = 'take' or position < count then
                    foreach child in array case when grown <> 0 and used > 0 then way[: used] || changed else array[changed] end loop
                        continue when child is null or node_noted[child] = patch_no;
                        node_noted[child] := patch_no;
                        noted := coalesce(noted, 0) + 1;
                        notes[noted] := (child, null, opened[child], sizes[child], null)::agui_internal.json_note;
                        noted_pieces[noted] := pieces[child];
                    end loop;
                    if (listed is not null or grown_count <> 0) and owner_noted[owner] is distinct from patch_no then
                        owner_noted[owner] := patch_no;
                        noted := coalesce(noted, 0) + 1;
                        notes[noted] := (null, owner, null, null, counts[owner])::agui_internal.json_note;
                        noted_items[noted] := items[owner];
                    end if;
                end if;

                -- Change it.

                if grown <> 0 and used > 0 then
                    foreach child in array way[: used] loop
                        sizes[child] := sizes[child] + grown;
                    end loop;
                    if grown_count <> 0 then
                        counts[owner] := counts[owner] + grown_count;
                    end if;
                end if;
                if listed is not null then
                    items[owner] := listed;
                end if;
                if changed is not null then
                    pieces[changed] := piece;
                    opened[changed] := null;
                    if sizes is not null then
                        sizes[changed] := size;
                    end if;
                end if;

                -- The second step.

                exit steps when step not in ('take', 'fetch');
                if step = 'fetch' and operation ->> 'op' = 'move' then
                    failure := case
                        when target <> destination then 'a value cannot be moved into itself'
                        when sizes[1] > limits.document_bytes then 'the document would be too large'
                    end;
                    exit steps;
                end if;
                printed := value::text;
                value_size := coalesce(value_size, agui_internal.json_size(printed));
                copied := coalesce(copied, 0) + value_size;
                spent := spent + 4 * value_size;
                if copied > limits.patch_copied_bytes then
                    failure := 'the patch copies too much';
                end if;
                -- The value is at most as deep as the document, which is measured once.
                if given_depth is null and sizes is not null and pg_column_size(value) > 400 then
                    given_depth := agui_internal.json_depth(document::text);
                end if;
                step := 'add';
                target := destination;
            end;
            end loop steps;

            if failure is not null then
                -- Without the path, which may contain names of people: refused patches appear in
                -- the log of the server.
                failure := concat_ws(' ', 'operation', position, substring(operation ->> 'op' from '^(?:add|remove|replace|move|copy|test)$')) || ': ' || failure;
                exit operations;
            end if;
        end;
        end loop operations;

        if failure is null then
            last_applied := patch_no;
            continue patches;
        end if;

        -- Undo what the failed patch has changed.

        for position in 1 .. coalesce(noted, 0) loop
            declare
                note agui_internal.json_note := notes[position];
            begin
                if note.node is not null then
                    pieces[note.node] := noted_pieces[position];
                    opened[note.node] := note.opened;
                    if sizes is not null then
                        sizes[note.node] := note.size;
                    end if;
                else
                    items[note.owner] := noted_items[position];
                    counts[note.owner] := note.member_count;
                end if;
            end;
        end loop;
        if is_emptied then
            pieces[1] := 'null';
            opened[1] := null;
            if sizes is not null then
                sizes[1] := octet_length('null');
            end if;
        end if;
        added_depth := first_depth;
        problem := coalesce(problem, failure);
    end;
    end loop patches;

    document := agui_internal.json_node_value(1, pieces, opened, members, added, items);
end
$function$;

comment on function agui_internal.json_patch_apply is
    'Applies RFC 6902 patches to a document, one after the other. A patch with a failing operation '
    'has no effect. Returns the document, the number of the last patch that was applied (0: none), '
    'the problem of the first one that was not, and the fuel used: 4 for each byte that is copied '
    'or moved, 1 for each array item that is shifted (for all items of the array if the place is '
    'far from its end). A patch that exceeds a limit fails too. When more '
    'than fuel is used (null: no limit), the remaining patches are skipped. '
    'null_is_empty: if the document is null, a patch finds an empty object. '
    'is_unread: the document given stands for one that has too many elements. Only a patch that begins with a new document can succeed.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_operation_problem(operation jsonb, op text, path text[], value jsonb)
returns text
language sql
immutable
parallel safe
return case
    when path is null then case
        when jsonb_typeof(operation) <> 'object' then 'it is not a JSON object'
        when operation ? 'path' then 'its path is not a JSON pointer'
        else 'it has no path'
    end
    when op in ('replace', 'add', 'test') then case when value is null then 'it has no value' end
    when op = 'remove' then null
    when op in ('move', 'copy') then case
        when agui_internal.json_pointer(operation ->> 'from') is not null then null
        when operation ? 'from' then 'its from is not a JSON pointer'
        else 'it has no from'
    end
    when operation ? 'op' then 'there is no such operation'
    else 'it has no op'
end;

comment on function agui_internal.json_operation_problem is
    'What is wrong with an operation of a JSON patch, whatever the document is; null: nothing. op, '
    'path (its tokens) and value are members of the operation.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_pointer(pointer text)
returns text[]
language sql
immutable
parallel safe
return case
    when pointer = '' then '{}'::text[]
    when not pointer ^@ '/' then null
    when pointer = '/' then array['']
    when strpos(pointer, '~') = 0 then string_to_array(substr(pointer, 2), '/')
    else agui_internal.json_pointer_escapes(pointer)
end;

comment on function agui_internal.json_pointer is
    'The tokens of a JSON pointer (RFC 6901), unescaped; no token: the whole document. Null if it '
    'is not a valid pointer.';

create or replace function agui_internal.json_pointer_escapes(pointer text)
returns text[]
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if pointer ~ '~([^01]|$)' then
        return null;
    end if;
    return array(
        select replace(replace(token.text, '~1', '/'), '~0', '~')
        from string_to_table(substr(pointer, 2), '/') with ordinality as token (text, position)
        order by token.position
    );
end
$function$;

comment on function agui_internal.json_pointer_escapes is 'The part of agui_internal.json_pointer for a pointer that has a ~.';

create or replace function agui_internal.json_take_apart(
    in value jsonb,
    in last_node int,
    out pieces jsonb[],
    out members jsonb,
    out items agui_internal.json_nodes
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if jsonb_typeof(value) = 'object' then
        select
            coalesce(array_agg(member.value), '{}'),
            jsonb_object(
                coalesce(array_agg(member.key), '{}'),
                coalesce(array_agg((last_node + member.position)::text), '{}')
            )
        into pieces, members
        from jsonb_each(json_take_apart.value) with ordinality as member (key, value, position);
    else
        pieces := array(select jsonb_array_elements(value));
        items := array(select generate_series(last_node + 1, last_node + cardinality(pieces)));
    end if;
end
$function$;

comment on function agui_internal.json_take_apart is
    'The values in an object or array, to become nodes of agui_internal.json_patch_apply after '
    'last_node, and the node of each: of the members of an object by name, or of the items of an '
    'array in order.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_index(token text)
returns int
language sql
immutable
parallel safe
return case when token ~ '^(0|[1-9][0-9]{0,8})$' then token::int end;

comment on function agui_internal.json_index is
    'A token of a JSON pointer as the index of an array item; null if it is none.';

-- Without recursion: PL/pgSQL takes kilobytes of the stack for each level, and a document may be
-- 1,000 levels deep.
-- The arrays are not copied on the way here: PL/pgSQL passes them by reference, and so do queries
-- with a generic plan, which agui_internal.json_patch_apply requires.
create or replace function agui_internal.json_node_value(
    node int,
    pieces jsonb[],
    opened int[],
    members jsonb[],
    added jsonb[],
    items agui_internal.json_nodes[]
)
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    owners   int[] := array[opened[node]]; -- the opened nodes, each before those in it
    position int := 1;
    owner    int;
    child    int;
    made     jsonb[] := '{}';              -- the value of each owner
    value    jsonb;
begin
    if opened[node] is null then
        return pieces[node];
    end if;

    -- If only the root is opened, there is nothing to search.
    while cardinality(opened) > 1 and position <= cardinality(owners) loop
        owner := owners[position];
        if members[owner] is not null then
            for child in
                select opened[named.node::int]
                from jsonb_each_text(members[owner] || coalesce(added[owner], '{}')) as named (name, node)
                where opened[named.node::int] is not null
            loop
                owners := array_append(owners, child);
            end loop;
        else
            for child in
                select opened[item.node]
                from unnest(items[owner]) as item (node)
                where opened[item.node] is not null
            loop
                owners := array_append(owners, child);
            end loop;
        end if;
        position := position + 1;
    end loop;

    for position in reverse cardinality(owners) .. 1 loop
        owner := owners[position];
        if members[owner] is not null then
            value := (
                select coalesce(jsonb_object_agg(member.name, member.value), '{}')
                from (
                    select named.name, coalesce(pieces[named.node::int], made[opened[named.node::int]]) as value
                    from jsonb_each_text(members[owner] || coalesce(added[owner], '{}')) as named (name, node)
                    offset 0
                ) as member
                where member.value is not null
            );
        else
            -- jsonb_agg would copy each number in them separately.
            value := to_jsonb(array(
                select coalesce(pieces[item.node], made[opened[item.node]])
                from unnest(items[owner]) with ordinality as item (node, position)
                order by item.position
            ));
        end if;
        -- Large values are not copied more often than necessary.
        if position > 1 then
            made[owner] := value;
        end if;
    end loop;
    return value;
end
$function$;

comment on function agui_internal.json_node_value is
    'The value of a node of agui_internal.json_patch_apply, put back together.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_place_problem(step text, parent_kind text)
returns text
language sql
immutable
parallel safe
return case
    when step in ('take', 'fetch') then 'nothing is at its from'
    when step <> 'add' then 'nothing is at the path'
    when parent_kind is null then 'the parent of the path does not exist'
    when parent_kind = 'array' then 'the array has no such position'
    when parent_kind <> 'object' then 'the parent of the path is neither an object nor an array'
end;

comment on function agui_internal.json_place_problem is
    'Why a step of agui_internal.json_patch_apply fails whose target does not exist, given the '
    'type of what would contain the target (null: that does not exist either).';

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_pointer_get(document jsonb, tokens text[])
returns jsonb
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    token pg_catalog.text;
    kind  pg_catalog.text;
begin
    -- In one step if no token is ambiguous as an index: each step copies its result.
    if pg_catalog.array_to_string(tokens, '/') operator(pg_catalog.!~) '(^|/)([[:space:]+-]|0[0-9])|[0-9]{10}' then
        return document operator(pg_catalog.#>) tokens;
    end if;
    foreach token in array tokens loop
        kind := pg_catalog.jsonb_typeof(document);
        if kind operator(pg_catalog.=) 'object' then
            document := document operator(pg_catalog.->) token;
        -- The operators of PostgreSQL also accept -1 and 01; the RFC does not.
        elsif kind operator(pg_catalog.=) 'array' and token operator(pg_catalog.~) '^(0|[1-9][0-9]{0,8})$' then
            document := document operator(pg_catalog.->) token::int;
        else
            return null;
        end if;
    end loop;
    return document;
end
$function$;

comment on function agui_internal.json_pointer_get is
    'The value at a JSON pointer, given as tokens; SQL null if there is none.';

create or replace function agui_internal.json_patches(patches text[], document_bytes bigint)
returns jsonb[]
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    -- While PostgreSQL makes jsonb, it takes many times the bytes of the text.
    bytes_of_group constant int := 1024 * 1024;
    -- Small documents can be patched too.
    most_elements constant bigint := greatest(document_bytes, 16 * 1024 * 1024);
begin
    return array(
        select element.patch
        from (
            select groups.group_no, '[' || string_agg(groups.patch, ',' order by groups.position) || ']' as joined
            from (
                select
                    case when agui_internal.json_has_too_many_elements(each.patch, most_elements) then 'null' else each.patch end as patch,
                    each.position,
                    sum(octet_length(each.patch)) over (order by each.position) / bytes_of_group as group_no
                from unnest(patches) with ordinality as each (patch, position)
            ) as groups
            group by groups.group_no
        ) as groups
        cross join lateral jsonb_array_elements(agui_internal.json_guard_numbers(groups.joined)::jsonb) with ordinality as element (patch, position)
        order by groups.group_no, element.position
    );
end
$function$;

comment on function agui_internal.json_patches is
    'Patches (guarded JSON texts) as agui_internal.json_patch_apply expects them; null for one whose elements alone exceed the limit '
    'document_bytes, and 16 MB. Converted in groups, because one at a time takes several times as long, and all at once much memory.';

create or replace function agui_internal.json_has_too_many_elements(document text, document_bytes bigint)
returns boolean
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- An element takes two bytes at least.
    return octet_length(document)::bigint * (agui_internal.json_element_bytes() / 2) > document_bytes
        and agui_internal.json_size(document) - octet_length(document) > document_bytes;
end
$function$;

comment on function agui_internal.json_has_too_many_elements is
    'Whether the elements of a document (guarded JSON text) alone exceed the limit document_bytes, so that to make jsonb of it would take '
    'too much memory.';

-- While PostgreSQL makes jsonb, an element takes many times the bytes that are printed for it, an
-- empty object 500. So a limit of the bytes alone would not bound the memory that patches take.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_size(document text)
returns bigint
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    bytes    constant pg_catalog.int8 := pg_catalog.octet_length(document);
    elements pg_catalog.int8;
begin
    if pg_catalog.strpos(document, '"') operator(pg_catalog.=) 0 then
        elements := bytes operator(pg_catalog.-) pg_catalog.octet_length(pg_catalog.translate(document, ',[{', ''));
    else
        -- Every second part between quotes is outside of strings.
        select pg_catalog.sum(pg_catalog.octet_length(part) operator(pg_catalog.-) pg_catalog.octet_length(pg_catalog.translate(part, ',[{', '')))
        into elements
        from pg_catalog.string_to_table(
            case
                when pg_catalog.strpos(document, '\') operator(pg_catalog.=) 0 then document
                else pg_catalog.replace(pg_catalog.replace(document, '\\', ''), '\"', '')
            end,
            '"'
        ) with ordinality as split (part, position)
        where (position operator(pg_catalog.%) 2) operator(pg_catalog.=) 1;
    end if;
    return bytes operator(pg_catalog.+) (agui_internal.json_element_bytes() operator(pg_catalog.*) elements);
end
$function$;

comment on function agui_internal.json_size is
    'The size of a JSON document for the limit document_bytes: its bytes, and agui_internal.json_element_bytes for each comma and each '
    'opening bracket outside of strings.';

create or replace function agui_internal.json_element_bytes()
returns int
language sql
immutable
parallel safe
return 32;

comment on function agui_internal.json_element_bytes is
    'What each comma and each opening bracket of a document counts in agui_internal.json_size, besides the byte that it is.';
