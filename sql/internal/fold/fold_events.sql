-- The reducer in SQL: goes on from what a lineage meant so far, over the events that follow.
--
-- The loop takes the conversation apart into nodes: messages and tool calls, numbered as they come, their parts in arrays of their own
-- (PL/pgSQL changes an element of an array variable in place). What is loaded from `start` stays untouched text until an event changes
-- it. A string that grows is kept in pieces, and so is metadata; agui_internal.fold_settle joins them once, at the end.
--
-- Texts are guarded here (agui_internal.json_guard), but for those in `result` and `texts`. An id is a JSON string in its usual spelling, with
-- its quotes. A field that is null reads as absent. An event whose fields have the wrong type is skipped, as if it were not there.
create or replace function agui_internal.fold_events(
    start agui_internal.fold,
    thread_key uuid,
    run_nos int[],
    after_seqs bigint[],
    through_seqs bigint[],
    given json default null,
    takes_input boolean[] default null
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    result   agui_internal.fold := start;
    event    record;
    last_seq bigint := start.through_seq;

    -- Nodes. An array reads as null where it has no entry.
    is_loaded  boolean := false;
    node_count int;
    keys       text[];     -- of a message its id, of a tool call 'call ' and its id; null without id
    numbers    int[];      -- of a message its stored version; null: new or changed
    roles      text[];     -- of a message
    texts      text[];     -- an untouched node; null once it is taken apart into the parts that follow
    heads      text[];     -- an object of the other members
    contents   text[];     -- content of a message, arguments of a call; where pieces follow, what they are added to
    insides    text[];     -- toolCalls of a message, function of a call without its arguments
    documents  jsonb[];    -- content of an activity that was patched
    parents    int[];      -- of a tool call the node of its message; null: a message
    following  int[];      -- of a message the node of the next message
    same_as    int[];      -- of a message that is another one too, at a second place: the node of that
    first_node int;
    last_node  int;
    linked     int;        -- messages up to this node have their place
    in_place   int;        -- as many of the loaded messages are where they were: all or none
    listed     int;        -- tool calls in messages up to this node have nodes, but for those that are loaded
    unlisted   text;       -- the loaded messages, as long as their tool calls have no nodes; null: not put together yet
    no_call    text;       -- a tool call that they do not have
    lists_all  boolean;    -- whether they have to be listed for the next tool call
    call_searches int;     -- how often they were looked through for one

    -- Pieces in the order of their events: of the string of a node or, where the number is negative, of its metadata.
    piece_nodes int[];
    pieces      text[];
    cleared     int[];     -- of a node the number of pieces that no longer count
    has_grown   boolean[]; -- whether the string of a node has grown, so that it is known to take more
    growing     int;       -- the node whose last pieces are still in the buffer
    buffer      text;

    -- Hash table from keys to nodes: the first message with an id, the first tool call with an id. To search the loaded ids a few times
    -- takes less than to enter all of them, so they are entered only after a number of searches, or when one has come a second time.
    buckets    int[];
    bucket     int;
    hashed     int;        -- nodes up to this one are in it
    held       int;
    loaded_ids text[];     -- of the first nodes, which are not in it
    searches   int;
    enters_all boolean;

    -- The event that made a string grow, while nothing else has happened.
    grown_type  text;
    grown_id    text;
    grown_owner text;

    -- The state that an event gave, patches of the state and of activities, applied together at the end, and the open chunk lanes.
    state         text;
    state_patches text[] := '{}';
    patched_nodes int[];
    patches       text[];
    lanes         jsonb := agui_internal.json_guard(start.lanes)::jsonb;

    -- What the event at hand says.
    action        text;
    next_action   text;
    closes        text;    -- the lanes that it closes: 'own' or 'all'
    id            text;
    delta         text;
    metadata      text;
    content       text;
    patch         text;
    activity_type text;
    replaces      boolean;
    inputs        text[];
    messages      json;
    input_no      int;
    chunk         record;

    -- What it does.
    key          text;
    calls        text;
    node         int;      -- the first node that has the id
    touched      int;      -- the node that it changes
    part         record;
    parent       int;
    insert_after int;
    settles      boolean;
    result_owner int;      -- the message whose tool results were added last, and the last one of them
    result_last  int;
begin
    for segment in 1 .. coalesce(cardinality(run_nos), 0) loop
    <<events>>
    for event in
        select
            element.type,
            case when element.type ^@ 'TOOL_CALL_' then element.tool_call_id else element.message_id end::text as id,
            element.delta::text as delta,
            element.owner::text as owner,
            element.metadata::text as metadata,
            element.role::text as role,
            element.name::text as name,
            element.tool_call_name::text as tool_call_name,
            element.parent_message_id::text as parent_message_id,
            element.raw,
            batch.first_seq + element.position - 1 as seq
        from (
            (
                select stored.first_seq, agui_internal.json_guarded(stored.events) as events
                from agui.batch as stored
                where stored.thread_key = fold_events.thread_key
                and stored.run_no = run_nos[segment]
                and stored.first_seq <= through_seqs[segment]
                and stored.first_seq + stored.n - 1 > after_seqs[segment]
                and stored.first_seq >= coalesce(
                    (
                        select max(before.first_seq)
                        from agui.batch as before
                        where before.thread_key = fold_events.thread_key
                        and before.first_seq <= after_seqs[segment] + 1
                    ),
                    1
                )
                order by stored.first_seq
            )
            union all
            select 1, agui_internal.json_guarded(given)
            where given is not null
            offset 0  -- so that a batch is guarded once, not for each function that reads it
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events) as (
                type text,
                "messageId" json,
                "toolCallId" json,
                delta json,
                "subagentRunId" json,
                metadata json,
                role json,
                name json,
                "toolCallName" json,
                "parentMessageId" json
            ),
            json_array_elements(batch.events)
        ) with ordinality as element (
            type, message_id, tool_call_id, delta, owner, metadata, role, name, tool_call_name, parent_message_id, raw, position
        )
        where element.position > after_seqs[segment] - batch.first_seq + 1
        and element.position <= through_seqs[segment] - batch.first_seq + 1
    loop
        last_seq := event.seq;

        -- Most of a stream is one more piece of the string that grew last.

        if event.type = grown_type
            and event.id is not distinct from grown_id
            and event.owner is not distinct from grown_owner
            and event.delta ^@ '"'
            and coalesce(event.metadata, event.role, event.name, event.tool_call_name, event.parent_message_id) is null
        then
            buffer := buffer || event.delta || E'\x01';
            if octet_length(buffer) > 2000 then
                piece_nodes := array_append(piece_nodes, growing);
                pieces := array_append(pieces, buffer);
                buffer := '';
            end if;
            continue;
        end if;

        -- Or one more piece of another string that has grown before.

        if event.type in ('TEXT_MESSAGE_CONTENT', 'TOOL_CALL_ARGS', 'REASONING_MESSAGE_CONTENT')
            and hashed = node_count
            and is_loaded
            and lanes is null
            and left(event.delta, 1) = '"'
            and left(event.id, 1) = '"'
            and coalesce(left(event.owner, 1), '"') = '"'
            and coalesce(left(event.metadata, 1), '{') = '{'
        then
            key := agui_internal.json_string_token(event.id);
            node := agui_internal.fold_find(buckets, keys, loaded_ids, case when event.type = 'TOOL_CALL_ARGS' then 'call ' || key else key end);
            if has_grown[node] then
                if event.metadata is not null then
                    piece_nodes := array_append(piece_nodes, -node);
                    pieces := array_append(pieces, event.metadata);
                end if;
                if growing <> node then
                    piece_nodes := array_append(piece_nodes, growing);
                    pieces := array_append(pieces, buffer);
                    buffer := '';
                end if;
                growing := node;
                buffer := buffer || event.delta || E'\x01';
                grown_type := event.type;
                grown_id := event.id;
                grown_owner := event.owner;
                continue;
            end if;
        end if;

        -- What the event says. Whatever is malformed is skipped here, before it has any effect.

        action := event.type;
        next_action := null;
        closes := null;
        metadata := null;

        case
            when action in (
                'TEXT_MESSAGE_CONTENT', 'TOOL_CALL_ARGS', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END',
                'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_CALL_RESULT',
                'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_END'
            ) then
                id := event.id;
                delta := event.delta;
                metadata := event.metadata;
                closes := 'own';
                continue when id is null
                    or left(id, 1) <> '"'
                    or left(metadata, 1) <> '{'
                    or left(event.owner, 1) <> '"';
                id := agui_internal.json_string_token(id);

                case
                    when action in ('TEXT_MESSAGE_CONTENT', 'REASONING_MESSAGE_CONTENT', 'TOOL_CALL_ARGS') then
                        continue when delta is null or left(delta, 1) <> '"';
                    when action = 'TEXT_MESSAGE_START' then
                        continue when left(event.role, 1) <> '"' or left(event.name, 1) <> '"';
                    when action = 'TOOL_CALL_START' then
                        continue when event.tool_call_name is null
                            or left(event.tool_call_name, 1) <> '"'
                            or left(event.parent_message_id, 1) <> '"';
                    when action = 'TOOL_CALL_RESULT' then
                        content := event.raw -> 'content';
                        continue when content is null
                            or left(content, 1) not in ('"', '[')
                            or left(event.role, 1) <> '"'
                            or json_typeof(event.raw -> 'messageId') is distinct from 'string';
                    else
                        -- Most ends say nothing more.
                        continue when action like '%\_END' and metadata is null and lanes is null;
                end case;

            when action in ('TEXT_MESSAGE_CHUNK', 'TOOL_CALL_CHUNK', 'REASONING_MESSAGE_CHUNK') then
                id := event.id;
                delta := event.delta;
                metadata := event.metadata;
                continue when left(id, 1) <> '"'
                    or left(delta, 1) <> '"'
                    or left(metadata, 1) <> '{'
                    or left(event.owner, 1) <> '"';

                case action
                    when 'TEXT_MESSAGE_CHUNK' then
                        continue when left(event.role, 1) <> '"' or left(event.name, 1) <> '"';
                        action := 'TEXT_MESSAGE_CONTENT';
                        chunk := agui_internal.fold_chunk(lanes, 'text', agui_internal.json_string_token(id), event.owner);
                    when 'TOOL_CALL_CHUNK' then
                        continue when left(event.tool_call_name, 1) <> '"' or left(event.parent_message_id, 1) <> '"';
                        action := 'TOOL_CALL_ARGS';
                        chunk := agui_internal.fold_chunk(lanes, 'tool', agui_internal.json_string_token(id), event.owner);
                        continue when event.tool_call_name is null and not chunk.goes_on;
                    else
                        action := 'REASONING_MESSAGE_CONTENT';
                        chunk := agui_internal.fold_chunk(lanes, 'reasoning', agui_internal.json_string_token(id), event.owner);
                end case;

                continue when chunk.id is null;
                lanes := chunk.lanes;
                id := chunk.id;
                if chunk.goes_on then
                    continue when delta is null and not agui_internal.fold_chunk_has_content(event.raw);
                else
                    next_action := case when delta is not null or event.raw -> 'rawEvent' is not null then action end;
                    action := case action
                        when 'TEXT_MESSAGE_CONTENT' then 'TEXT_MESSAGE_START'
                        when 'TOOL_CALL_ARGS' then 'TOOL_CALL_START'
                        else 'REASONING_MESSAGE_START'
                    end;
                end if;
                delta := coalesce(delta, '""');

            when action = 'STATE_DELTA' then
                closes := 'own';
                patch := coalesce(event.delta, nullif((event.raw -> 'patch')::text, 'null'));
                if event.delta is null and left(patch, 1) = '{' then
                    patch := '[' || patch || ']';
                end if;
                continue when patch is null or left(patch, 1) <> '[' or left(event.owner, 1) <> '"';
                state_patches := array_append(state_patches, patch);
                action := null;

            when action = 'STATE_SNAPSHOT' then
                closes := 'own';
                content := coalesce(event.raw -> 'snapshot', event.raw -> 'state');
                continue when content is null or left(event.owner, 1) <> '"';
                state := content;
                state_patches := '{}';
                action := null;

            when action in ('ACTIVITY_SNAPSHOT', 'ACTIVITY_DELTA', 'ACTIVITY') then
                id := event.id;
                metadata := event.metadata;
                activity_type := event.raw -> 'activityType';
                patch := nullif((event.raw -> 'patch')::text, 'null');
                replaces := true;
                continue when id is null
                    or left(id, 1) <> '"'
                    or activity_type is null
                    or left(activity_type, 1) <> '"'
                    or left(metadata, 1) <> '{';
                id := agui_internal.json_string_token(id);

                case action
                    when 'ACTIVITY_SNAPSHOT' then
                        content := event.raw -> 'content';
                        continue when content is null
                            or left(content, 1) <> '{'
                            or json_typeof(event.raw -> 'replace') not in ('boolean', 'null')
                            or left(event.owner, 1) <> '"';
                        replaces := (event.raw -> 'replace')::text is distinct from 'false';
                    when 'ACTIVITY_DELTA' then
                        patch := coalesce(patch, '[]');
                    else
                        content := nullif((event.raw -> 'snapshot')::text, 'null');
                        continue when coalesce(content, patch) is null
                            or left(content, 1) <> '{'
                            or left(patch, 1) not in ('[', '{')
                            or left(event.owner, 1) <> '"';
                        if left(patch, 1) = '{' then
                            patch := '[' || patch || ']';
                        end if;
                        action := case when content is null then 'ACTIVITY_DELTA' else 'ACTIVITY_SNAPSHOT' end;
                        next_action := case when content is not null and patch is not null then 'ACTIVITY_DELTA' end;
                end case;

            when action in ('CUSTOM', 'STEP_STARTED', 'STEP_FINISHED', 'REASONING_START', 'REASONING_END') then
                closes := 'own';
                action := null;
                continue when lanes is null or left(event.owner, 1) <> '"';

            when action in ('SUBAGENT_FINISHED', 'SUBAGENT_ERROR') then
                closes := 'own';
                action := null;
                continue when lanes is null or event.owner is null or left(event.owner, 1) <> '"';

            when action = 'RUN_STARTED' then
                closes := 'all';
                content := nullif((event.raw -> 'input')::text, 'null');
                if takes_input[segment] then  -- from beside the events
                    takes_input[segment] := false;
                    select agui_internal.json_guarded(beside.input)::text into content
                    from agui.run_input as beside
                    where beside.thread_key = fold_events.thread_key and beside.run_no = run_nos[segment];
                end if;
                continue when left(content, 1) <> '{';
                inputs := '{}';
                if content is not null then
                    continue when json_typeof(content::json -> 'messages') not in ('array', 'null');
                    if json_typeof(content::json -> 'messages') = 'array' then
                        inputs := agui_internal.fold_message_list(content::json -> 'messages');
                    end if;
                end if;
                input_no := 0;
                action := case when cardinality(inputs) > 0 then 'INPUT_MESSAGE' end;
                content := content::json -> 'state';
                if content <> 'null' then
                    state := content;
                    state_patches := '{}';
                end if;

            when action = 'RUN_FINISHED' then
                closes := 'all';
                if json_typeof(event.raw -> 'outcome') = 'object'
                    and agui_internal.json_string_token((event.raw -> 'outcome' -> 'type')::text) = '"interrupt"'
                then
                    continue when json_typeof(event.raw -> 'outcome' -> 'interrupts') is distinct from 'array';
                    result.interrupts := agui_internal.fold_interrupts(event.raw -> 'outcome' -> 'interrupts');
                else
                    result.interrupts := '[]';
                end if;
                action := null;

            when action = 'RUN_ERROR' then
                closes := 'all';
                action := null;

            when action = 'MESSAGES_SNAPSHOT' then
                closes := 'all';
                messages := event.raw -> 'messages';
                continue when json_typeof(messages) is distinct from 'array' or left(event.metadata, 1) <> '{';

            when action = 'REASONING_ENCRYPTED_VALUE' then
                id := event.raw -> 'entityId';
                content := event.raw -> 'encryptedValue';
                continue when id is null
                    or left(id, 1) <> '"'
                    or content is null
                    or left(content, 1) <> '"'
                    or json_typeof(event.raw -> 'subtype') not in ('string', 'null');
                id := agui_internal.json_string_token(id);
                if event.raw ->> 'subtype' = 'tool-call' then
                    action := 'TOOL_CALL_ENCRYPTED_VALUE';
                end if;

            else
                continue;
        end case;

        grown_type := null;

        if lanes is not null and closes is not null then
            lanes := case closes when 'own' then agui_internal.fold_close_lane(lanes, event.owner) end;
        end if;

        -- What it does: one action, or several where the event stands for several.

        while action is not null loop
            touched := null;
            insert_after := null;
            settles := false;

            -- Load what the fold starts from: messages only, their tool calls when an event needs them.

            if not is_loaded and action <> 'MESSAGES_SNAPSHOT' then
                numbers := result.message_nos;
                roles := result.roles;
                texts := result.bodies;
                heads := '{}';
                contents := '{}';
                insides := '{}';
                documents := '{}';
                parents := '{}';
                cleared := '{}';
                piece_nodes := '{}';
                pieces := '{}';
                patched_nodes := '{}';
                patches := '{}';
                has_grown := '{}';
                growing := null;
                buffer := '';
                node_count := cardinality(texts);
                keys := array_fill(null::text, array[node_count]);
                following := array(select generate_series(2, node_count));
                first_node := case when node_count > 0 then 1 end;
                last_node := nullif(node_count, 0);
                linked := node_count;
                in_place := node_count;
                listed := node_count;
                unlisted := null;
                no_call := null;
                lists_all := false;
                call_searches := 0;
                hashed := node_count;
                buckets := array_fill(0, array[64]);
                loaded_ids := result.message_ids;
                searches := 0;
                -- Such an id may have stayed guarded, so it does not say enough.
                enters_all := strpos(array_to_string(loaded_ids, ''), '\') > 0;
                result_owner := null;
                same_as := '{}';
                if (select count(distinct number) < count(number) from unnest(numbers) as number) then
                    for part in
                        select place.node, place.first_node
                        from (
                            select
                                place.node,
                                min(place.node) over (partition by place.number) as first_node
                            from unnest(numbers) with ordinality as place (number, node)
                            where place.number is not null
                        ) as place
                        where place.node > place.first_node
                    loop
                        same_as[part.node] := part.first_node;
                    end loop;
                    in_place := 0;
                end if;
                is_loaded := true;
            end if;

            -- Find the first node that has the id.

            if action = 'INPUT_MESSAGE' then
                input_no := input_no + 1;
                content := inputs[input_no];
                id := content::json -> 'id';
                id := case when left(id, 1) = '"' then agui_internal.json_string_token(id) end;
                next_action := case when input_no < cardinality(inputs) then 'INPUT_MESSAGE' end;
            elsif action ^@ 'TOOL_CALL_' then
                if unlisted is null then
                    unlisted := array_to_string(result.bodies, '');
                    -- An escape can hide an id, but letters are rarely written as escapes.
                    lists_all := lists_all or strpos(unlisted, '\u00') > 0
                        and unlisted ~ '\\u00(2[dD]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])';
                end if;
                if unlisted <> '' and (action = 'TOOL_CALL_START' or id is distinct from no_call) then
                    -- A message that gets another call has its calls listed too. To look for one in the text takes a part of listing all.
                    call_searches := call_searches + 1;
                    lists_all := lists_all
                        or call_searches > 40
                        or action = 'TOOL_CALL_START'
                            and agui_internal.fold_find(buckets, keys, loaded_ids, agui_internal.json_string_token(event.parent_message_id))
                                <= cardinality(result.bodies)
                        or strpos(unlisted, substr(id, 2, length(id) - 2)) > 0
                        or id !~ '^"[A-Za-z0-9_-]*"$';
                    no_call := id;
                end if;
                for holder in case when lists_all and unlisted <> '' then 1 else listed + 1 end .. node_count loop
                    continue when holder > cardinality(result.bodies) and holder <= listed;
                    calls := case
                        when texts[holder] is null then insides[holder]
                        when strpos(texts[holder], 'toolCalls') > 0 or strpos(texts[holder], '\u') > 0
                            then (agui_internal.json_guard(texts[holder])::json -> 'toolCalls')::text
                    end;
                    continue when left(calls, 1) <> '[' or calls is null or coalesce(parents[holder], same_as[holder]) is not null;
                    for part in
                        select
                            call.value,
                            agui_internal.json_string_token((call.value -> 'id')::text) as id
                        from json_array_elements(calls::json) with ordinality as call (value, position)
                        where json_typeof(call.value) = 'object'
                        order by call.position
                    loop
                        node_count := node_count + 1;
                        keys[node_count] := case when left(part.id, 1) = '"' then 'call ' || part.id end;
                        parents[node_count] := holder;
                        texts[node_count] := agui_internal.json_unguard(part.value::text);
                    end loop;
                end loop;
                listed := node_count;
                if lists_all then
                    unlisted := '';
                end if;
            end if;
            key := case when action ^@ 'TOOL_CALL_' then 'call ' || id else id end;

            if enters_all and loaded_ids <> '{}' then
                keys := agui_internal.fold_keys(result.message_ids, result.bodies) || keys[cardinality(loaded_ids) + 1 :];
                loaded_ids := '{}';
                buckets := array_fill(0, array[cardinality(buckets)]);
                hashed := 0;
            end if;
            while hashed < node_count loop
                if (hashed - cardinality(loaded_ids)) * 2 >= cardinality(buckets) then
                    buckets := array_fill(0, array[cardinality(buckets) * 8]);
                    hashed := cardinality(loaded_ids);
                end if;
                hashed := hashed + 1;
                continue when keys[hashed] is null;
                bucket := hashtext(keys[hashed]) & (cardinality(buckets) - 1);
                loop
                    held := buckets[bucket + 1];
                    if held = 0 then
                        buckets[bucket + 1] := hashed;
                        exit;
                    elsif keys[held] = keys[hashed] then
                        -- The first in the conversation counts, which is the newer one when it was put in between.
                        parent := following[hashed];
                        while parent <> held loop
                            parent := following[parent];
                        end loop;
                        if parent = held then
                            buckets[bucket + 1] := hashed;
                        end if;
                        exit;
                    end if;
                    bucket := (bucket + 1) & (cardinality(buckets) - 1);
                end loop;
            end loop;

            node := agui_internal.fold_find(buckets, keys, loaded_ids, key);
            if node is null then
                searches := searches + 1;
                enters_all := enters_all or searches > 30;
            end if;

            -- Make what is new, or say which node changes.

            case
                when action = 'MESSAGES_SNAPSHOT' then
                    settles := true;

                when action in ('TEXT_MESSAGE_CONTENT', 'REASONING_MESSAGE_CONTENT') then
                    if roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when action = 'TOOL_CALL_ARGS' then
                    if coalesce(insides[node], (agui_internal.json_guard(texts[node])::json -> 'function')::text) like '{%' then
                        touched := node;
                    end if;

                when action in ('TEXT_MESSAGE_START', 'REASONING_MESSAGE_START') then
                    if node is null then
                        node_count := node_count + 1;
                        touched := node_count;
                        keys[touched] := id;
                        roles[touched] := case
                            when action = 'REASONING_MESSAGE_START' then 'reasoning'
                            when event.role is null then 'assistant'
                            else agui_internal.json_string_text(event.role)
                        end;
                        heads[touched] := '{' || concat_ws(
                            ',',
                            '"id":' || id,
                            '"role":' || case
                                when action = 'REASONING_MESSAGE_START' then '"reasoning"'
                                else coalesce(event.role, '"assistant"')
                            end,
                            '"name":' || case when action = 'TEXT_MESSAGE_START' then event.name end,
                            '"subagentRunId":' || event.owner
                        ) || '}';
                        contents[touched] := '""';
                    elsif metadata is not null and roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when action in ('TEXT_MESSAGE_END', 'REASONING_MESSAGE_END') then
                    if metadata is not null and roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when action = 'TOOL_CALL_END' then
                    if metadata is not null then
                        touched := node;
                    end if;

                when action = 'TOOL_CALL_START' then
                    if node is null then
                        parent := case
                            when event.parent_message_id <> '""'
                                then agui_internal.fold_find(buckets, keys, loaded_ids, agui_internal.json_string_token(event.parent_message_id))
                        end;
                        if parent is null or roles[parent] is distinct from 'assistant' then
                            node_count := node_count + 1;
                            keys[node_count] := case
                                when parent is null and event.parent_message_id <> '""'
                                    then agui_internal.json_string_token(event.parent_message_id)
                                else id
                            end;
                            parent := agui_internal.fold_find(buckets, keys, loaded_ids, keys[node_count]);
                            enters_all := enters_all or parent is not null;
                            roles[node_count] := 'assistant';
                            heads[node_count] := '{' || concat_ws(
                                ',',
                                '"id":' || keys[node_count],
                                '"role":"assistant"',
                                '"subagentRunId":' || case when parent is null then event.owner end
                            ) || '}';
                            parent := node_count;
                        end if;
                        node_count := node_count + 1;
                        touched := node_count;
                        keys[touched] := key;
                        parents[touched] := parent;
                        heads[touched] := '{"id":' || id || ',"type":"function"}';
                        insides[touched] := '{"name":' || event.tool_call_name || '}';
                        contents[touched] := '""';
                        listed := node_count;
                    elsif coalesce(insides[node], (agui_internal.json_guard(texts[node])::json -> 'function')::text) like '{%' is not true then
                        null;
                    elsif metadata is not null
                        or agui_internal.json_string_token(event.tool_call_name) is distinct from agui_internal.json_string_token(
                            coalesce(
                                agui_internal.json_guard(texts[node])::json #> '{function,name}',
                                insides[node]::json -> 'name'
                            )::text
                        )
                    then
                        touched := node;
                    end if;

                when action = 'TOOL_CALL_RESULT' then
                    if roles[parents[node]] is distinct from 'assistant' then
                        node := agui_internal.fold_assistant_call(key, first_node, following, keys, roles, parents);
                    end if;
                    if node is not null then
                        insert_after := case when result_owner = parents[node] then result_last else parents[node] end;
                        while roles[following[insert_after]] = 'tool' loop
                            insert_after := following[insert_after];
                        end loop;
                    end if;
                    node_count := node_count + 1;
                    if node is not null then
                        result_owner := case when coalesce(nullif(event.role, '""'), '"tool"') = '"tool"' then parents[node] end;
                        result_last := node_count;
                    end if;
                    keys[node_count] := agui_internal.json_string_token((event.raw -> 'messageId')::text);
                    enters_all := enters_all or agui_internal.fold_find(buckets, keys, loaded_ids, keys[node_count]) is not null;
                    roles[node_count] := coalesce(nullif(agui_internal.json_string_text(event.role), ''), 'tool');
                    texts[node_count] := agui_internal.json_unguard(
                        '{' || concat_ws(
                            ',',
                            '"id":' || keys[node_count],
                            '"role":' || coalesce(nullif(event.role, '""'), '"tool"'),
                            '"content":' || content,
                            '"toolCallId":' || id,
                            '"subagentRunId":' || event.owner
                        ) || '}'
                    );
                    touched := case when metadata is not null then node_count end;

                when action = 'REASONING_ENCRYPTED_VALUE' then
                    if roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when action = 'TOOL_CALL_ENCRYPTED_VALUE' then
                    if node is not null and roles[parents[node]] is distinct from 'assistant' then
                        node := agui_internal.fold_assistant_call(key, first_node, following, keys, roles, parents);
                    end if;
                    touched := node;

                when action = 'INPUT_MESSAGE' then
                    if node is null then
                        node_count := node_count + 1;
                        keys[node_count] := id;
                        roles[node_count] := agui_internal.json_string_text((content::json -> 'role')::text);
                        texts[node_count] := agui_internal.json_unguard(content);
                        -- Tool calls are listed in the order of the conversation.
                        lists_all := lists_all or strpos(content, 'toolCalls') > 0 or strpos(content, '\u') > 0;
                    end if;

                when action = 'ACTIVITY_SNAPSHOT' then
                    if replaces and (same_as[node] is not null or node = any (same_as)) then
                        settles := true;
                    elsif node is null or replaces and roles[node] is distinct from 'activity' then
                        if node is null then
                            node_count := node_count + 1;
                            touched := node_count;
                            keys[touched] := id;
                        else
                            -- A message of another role gives way, with all that it had.
                            touched := node;
                            if growing = node then
                                growing := null;
                                buffer := '';
                            end if;
                            cleared[node] := cardinality(pieces);
                            has_grown[node] := false;
                            numbers[node] := null;
                            texts[node] := null;
                            result_owner := null;
                            for part in
                                select call.node
                                from generate_subscripts(parents, 1) as call (node)
                                where parents[call.node] = touched
                            loop
                                keys[part.node] := null;
                                parents[part.node] := 0;
                                hashed := cardinality(loaded_ids);
                            end loop;
                            if hashed = cardinality(loaded_ids) then
                                buckets := array_fill(0, array[cardinality(buckets)]);
                            end if;
                        end if;
                        roles[touched] := 'activity';
                        heads[touched] := '{' || concat_ws(
                            ',',
                            '"id":' || id,
                            '"role":"activity"',
                            '"activityType":' || activity_type,
                            '"subagentRunId":' || event.owner
                        ) || '}';
                        insides[touched] := null;
                        documents[touched] := null;
                        contents[touched] := content;
                    elsif roles[node] = 'activity' and (replaces or metadata is not null) then
                        touched := node;
                    end if;

                when action = 'ACTIVITY_DELTA' then
                    if roles[node] = 'activity' then
                        touched := node;
                    end if;
            end case;

            -- Give new messages their place: at the end, but for the result of a tool call.

            while linked < node_count loop
                linked := linked + 1;
                continue when parents[linked] is not null;
                if insert_after is not null and insert_after <> last_node then
                    following[linked] := following[insert_after];
                    following[insert_after] := linked;
                    if insert_after < in_place then
                        in_place := 0;
                    end if;
                else
                    if last_node is null then
                        first_node := linked;
                    else
                        following[last_node] := linked;
                    end if;
                    last_node := linked;
                end if;
            end loop;

            -- Change the node. What was untouched so far, and the message of a tool call too, is taken apart first.

            if touched is not null then
                touched := coalesce(same_as[touched], touched);
                parent := touched;
                while parent is not null loop
                    numbers[parent] := null;
                    if texts[parent] is not null then
                        part := agui_internal.fold_open(agui_internal.json_guard(texts[parent]), parents[parent] is not null);
                        texts[parent] := null;
                        heads[parent] := part.head;
                        contents[parent] := part.content;
                        insides[parent] := part.inside;
                        if part.metadata is not null then
                            piece_nodes := array_append(piece_nodes, -parent);
                            pieces := array_append(pieces, part.metadata);
                        end if;
                    end if;
                    parent := parents[parent];
                end loop;

                if metadata is not null and next_action is null then
                    piece_nodes := array_append(piece_nodes, -touched);
                    pieces := array_append(pieces, metadata);
                end if;

                case
                    when action in ('TEXT_MESSAGE_CONTENT', 'REASONING_MESSAGE_CONTENT', 'TOOL_CALL_ARGS') then
                        if growing <> touched then
                            piece_nodes := array_append(piece_nodes, growing);
                            pieces := array_append(pieces, buffer);
                            buffer := '';
                        end if;
                        growing := touched;
                        has_grown[touched] := same_as[node] is null;
                        buffer := buffer || delta || E'\x01';
                        grown_type := event.type;
                        grown_id := event.id;
                        grown_owner := event.owner;

                    when action = 'TOOL_CALL_START' then
                        if node is not null then
                            insides[touched] := agui_internal.json_member_set(insides[touched], 'name', event.tool_call_name);
                        end if;

                    when action in ('REASONING_ENCRYPTED_VALUE', 'TOOL_CALL_ENCRYPTED_VALUE') then
                        heads[touched] := agui_internal.json_member_set(heads[touched], 'encryptedValue', content);

                    when action = 'ACTIVITY_SNAPSHOT' then
                        if replaces and node is not null then
                            heads[touched] := agui_internal.json_member_set(
                                agui_internal.json_member_set(heads[touched], 'activityType', activity_type),
                                'subagentRunId',
                                event.owner
                            );
                            contents[touched] := content;
                            documents[touched] := null;
                            patched_nodes := array_replace(patched_nodes, touched, 0);
                        end if;

                    when action = 'ACTIVITY_DELTA' then
                        -- Together with others at the end, unless it depends on its success what else changes, or its path is "" and
                        -- what it makes null is an empty object for the next one.
                        if same_as[node] is null
                            and node <> all (same_as)
                            and (heads[touched]::json -> 'activityType')::text = activity_type
                            and strpos(patch, '""') = 0
                        then
                            patched_nodes := array_append(patched_nodes, touched);
                            patches := array_append(patches, patch);
                        else
                            part := agui_internal.fold_activity(
                                documents[touched],
                                contents[touched],
                                array(
                                    select earlier.patch
                                    from unnest(patched_nodes, patches) with ordinality as earlier (node, patch, position)
                                    where earlier.node = touched
                                    order by earlier.position
                                )
                            );
                            documents[touched] := part.document;
                            patched_nodes := array_replace(patched_nodes, touched, 0);
                            part := agui_internal.fold_activity(documents[touched], contents[touched], array[patch]);
                            if part.applied > 0 and (same_as[node] is not null or node = any (same_as)) then
                                settles := true;
                            elsif part.applied > 0 then
                                documents[touched] := part.document;
                                heads[touched] := agui_internal.json_member_set(heads[touched], 'activityType', activity_type);
                            end if;
                        end if;

                    else
                        null;
                end case;
            end if;

            -- What concerns all messages, or one place of a message that stands at several, works on the fold as a whole.

            if settles then
                if is_loaded then
                    result := agui_internal.fold_settle(
                        result, in_place, first_node, following, same_as, keys, numbers, roles, texts, heads, contents, insides,
                        documents, parents, cleared, piece_nodes, pieces, growing, buffer, patched_nodes, patches
                    );
                    is_loaded := false;
                end if;
                case action
                    when 'MESSAGES_SNAPSHOT' then
                        result := agui_internal.fold_snapshot_messages(result, messages, event.metadata::json);
                    when 'ACTIVITY_DELTA' then
                        result := agui_internal.fold_part(result, key, activity_type, agui_internal.json_guard(agui_internal.json_from_jsonb(part.document)));
                    when 'ACTIVITY_SNAPSHOT' then
                        -- Once more, now that the message is one of its own.
                        result := agui_internal.fold_part(result, key, null, null);
                        continue;
                end case;
            end if;

            action := next_action;
            next_action := null;
        end loop;
    end loop events;
    end loop;

    if is_loaded then
        result := agui_internal.fold_settle(
            result, in_place, first_node, following, same_as, keys, numbers, roles, texts, heads, contents, insides,
            documents, parents, cleared, piece_nodes, pieces, growing, buffer, patched_nodes, patches
        );
    end if;
    if cardinality(state_patches) > 0 then
        part := agui_internal.json_patch_apply(
            agui_internal.json_guard_numbers(coalesce(state, agui_internal.json_guard(result.state)))::jsonb,
            agui_internal.json_patches(state_patches)
        );
        if part.applied > 0 then
            result.state := agui_internal.json_from_jsonb(part.document);
            state := null;
        end if;
    end if;
    result.state := coalesce(agui_internal.json_unguard(state), result.state);
    result.lanes := agui_internal.json_unguard(lanes::text);
    result.through_seq := last_seq;
    return result;
end
$function$;

comment on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[]) is
    'What a lineage means, from what it meant before: applies the events of its runs, one segment after the other. Segment i is the events '
    'of run run_nos[i] with after_seqs[i] < seq <= through_seqs[i]; with a run number of null, those of the JSON array given.';

revoke execute on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[]) from public;
