-- The reducer in SQL: goes on from what a lineage meant so far, over the events that follow.
--
-- The loop takes the conversation apart into nodes: messages and tool calls, numbered as they come, their parts in arrays of their own
-- (PL/pgSQL changes an element of an array variable in place, and nothing else). A node that was loaded from `start` stays untouched text, its
-- body, until an event changes it; agui_internal.fold_open takes it apart then. A string that grows is kept in pieces, and so is metadata;
-- agui_internal.fold_settle joins them once, at the end.
--
-- Of each event: is it one more piece of a string? · Is it well formed? · What does it say? · What does that do: find, make, place,
-- change. The steps have headings below.
--
-- Texts are guarded here (agui_internal.json_guard), but for those in `result` and `bodies`. An id is a JSON string in its usual spelling, with
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

    -- Nodes. An array reads as null where it has no entry.
    is_loaded    boolean := false;
    loaded_count int;
    node_count   int;
    keys         text[];     -- of a message that is new its id, of a tool call 'call ' and its id; null without id
    numbers      int[];      -- of a message its stored version; null: new or changed
    roles        text[];     -- of a message
    bodies       text[];     -- of a node that is in one piece, guarded for a tool call; null once it is taken apart into these parts:
    heads        text[];     -- an object of the members that stay, with marks in place of the others (agui_internal.fold_open)
    contents     text[];     -- content of a message, arguments of a call; where pieces follow, what they are added to
    documents    jsonb[];    -- content of an activity that was patched
    parents      int[];      -- of a tool call the node of its message, 0 when that is gone; null: a message
    following    int[];      -- of a message the node of the next message; of loaded ones only once is_linked
    is_linked    boolean;
    same_as      int[];      -- of a message that is another one too, at a second place: the node of that
    first_node   int;
    last_node    int;
    in_place     int;        -- as many of the loaded messages are where they were: all or none

    -- Pieces in the order of their events: of the string of a node or, where the number is negative, of its metadata.
    piece_nodes int[];
    pieces      text[];
    cleared     int[];       -- of a node the number of pieces that no longer count
    has_grown   boolean[];   -- whether the string of a node has grown, so that it is known to take more
    growing     int;         -- the node whose last pieces are still in the buffer
    buffer      text;

    -- The index: the first message with an id, the first tool call with an id. The loaded ids are searched as they are until it pays to
    -- index them too.
    buckets     jsonb[];     -- in each bucket keys and their nodes: agui_internal.fold_find
    indexed     int;         -- nodes up to this one are in it, but for those that are loaded
    loaded_ids  text[];
    loaded_keys jsonb;
    misses      int;

    -- Tool calls of messages that came whole have nodes only once an event needs them.
    listed        int;       -- those of messages up to this node have
    has_unlisted  boolean;   -- whether there are others
    lists_calls   boolean;   -- whether they are needed
    loaded_text   text;      -- the loaded messages, to look for the id of a call in
    call_searches int;

    -- The event that made a string grow, while nothing else has happened.
    grown_type  text;
    grown_id    text;
    grown_owner text;

    -- The state that an event gave, patches of the state and of activities, which are applied together, and the open chunk lanes.
    state         text;
    state_patches text[] := start.state_patches;
    patched_nodes int[];
    patches       text[];
    lanes         jsonb := agui_internal.json_guard(start.lanes)::jsonb;

    -- What the event at hand says.
    action        text;
    next_action   text;
    id            text;
    is_call       boolean;   -- whether the id is that of a tool call
    delta         text;
    metadata      text;
    content       text;
    patch         text;
    activity_type text;
    replaces      boolean;
    input         json;
    messages      json;
    inputs        text[];
    input_no      int;
    chunk         record;
    raw           json;
    raws          json[];    -- the events of a batch as they are, and the first seq of it
    raws_seq      bigint;

    -- What it does.
    key          text;
    node         int;        -- the first node that has the id
    touched      int;        -- the node that it changes
    added        int;        -- the message that it adds
    insert_after int;
    detaches     boolean;
    calls        json;
    known        json;       -- a call that exists
    parent       int;
    other        int;
    bucket       int;
    part         record;
    result_owner int;        -- the message whose tool results were added last, and the last one of them
    result_last  int;
begin
    for segment in 1 .. coalesce(cardinality(run_nos), 0) loop
    <<events>>
    for event in
        select
            element.*,
            case when element.type ^@ 'TOOL_CALL_' then element."toolCallId" else element."messageId" end::text as id,
            batch.first_seq
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
        ) as batch
        cross join lateral json_populate_recordset(null::agui_internal.event_fields, batch.events) with ordinality as element
        where element.ordinality > after_seqs[segment] - batch.first_seq + 1
        and element.ordinality <= through_seqs[segment] - batch.first_seq + 1
    loop
        -- One more piece. Most of a stream is one more piece of the string that grew last.

        if event.type = grown_type
            and event.id is not distinct from grown_id
            and event."subagentRunId"::text is not distinct from grown_owner
            and event.delta::text ^@ '"'
            and coalesce(event.metadata, event.role, event.name, event."toolCallName", event."parentMessageId") is null
        then
            buffer := buffer || event.delta::text || E'\x01';
            continue when octet_length(buffer) < 2000;
            piece_nodes := array_append(piece_nodes, growing);
            pieces := array_append(pieces, buffer);
            buffer := '';
            continue;
        end if;

        -- Well formed. What is not, and what is of no type that means something here, is skipped before it has any effect.

        continue when (
            case
                when event.type in (
                    'TEXT_MESSAGE_CONTENT', 'REASONING_MESSAGE_CONTENT', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'REASONING_MESSAGE_START',
                    'REASONING_MESSAGE_END'
                ) then
                    event.id ^@ '"'
                    and (event.delta::text ^@ '"' or event.type not like '%\_CONTENT')
                    and (event.role::text ^@ '"' or event.type <> 'TEXT_MESSAGE_START') is not false
                    and (event.name::text ^@ '"' or event.type <> 'TEXT_MESSAGE_START') is not false
                    and (event."subagentRunId"::text ^@ '"') is not false
                    and (event.metadata::text ^@ '{') is not false

                when event.type in ('TOOL_CALL_ARGS', 'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_CALL_RESULT') then
                    event.id ^@ '"'
                    and case event.type
                        when 'TOOL_CALL_ARGS' then event.delta::text ^@ '"'
                        when 'TOOL_CALL_START' then event."toolCallName"::text ^@ '"' and (event."parentMessageId"::text ^@ '"') is not false
                        when 'TOOL_CALL_RESULT' then
                            event."messageId"::text ^@ '"' and left(event.content::text, 1) in ('"', '[') and (event.role::text ^@ '"') is not false
                        else true
                    end
                    and (event."subagentRunId"::text ^@ '"') is not false
                    and (event.metadata::text ^@ '{') is not false

                when event.type in ('TEXT_MESSAGE_CHUNK', 'TOOL_CALL_CHUNK', 'REASONING_MESSAGE_CHUNK') then
                    case event.type
                        when 'TOOL_CALL_CHUNK' then
                            (event."toolCallName"::text ^@ '"') is not false
                            and (event."parentMessageId"::text ^@ '"') is not false
                        else
                            (event.role::text ^@ '"' or event.type <> 'TEXT_MESSAGE_CHUNK') is not false
                            and (event.name::text ^@ '"' or event.type <> 'TEXT_MESSAGE_CHUNK') is not false
                    end
                    and (event.id ^@ '"') is not false
                    and (event.delta::text ^@ '"') is not false
                    and (event."subagentRunId"::text ^@ '"') is not false
                    and (event.metadata::text ^@ '{') is not false

                when event.type = 'STATE_DELTA' then
                    coalesce(event.delta::text ^@ '[', left(event.patch::text, 1) in ('[', '{'))
                    and (event."subagentRunId"::text ^@ '"') is not false

                when event.type in ('ACTIVITY_DELTA', 'ACTIVITY_SNAPSHOT', 'ACTIVITY') then
                    event.id ^@ '"'
                    and event."activityType"::text ^@ '"'
                    and case event.type
                        when 'ACTIVITY_SNAPSHOT' then event.content::text ^@ '{' and (event.replace::text in ('true', 'false')) is not false
                        when 'ACTIVITY' then
                            coalesce(event.snapshot, event.patch) is not null
                            and (event.snapshot::text ^@ '{') is not false
                            and (left(event.patch::text, 1) in ('[', '{')) is not false
                        else true
                    end
                    and (event."subagentRunId"::text ^@ '"' or event.type = 'ACTIVITY_DELTA') is not false
                    and (event.metadata::text ^@ '{') is not false

                when event.type in (
                    'STATE_SNAPSHOT', 'CUSTOM', 'STEP_STARTED', 'STEP_FINISHED', 'REASONING_START', 'REASONING_END', 'SUBAGENT_FINISHED', 'SUBAGENT_ERROR'
                ) then
                    (event."subagentRunId"::text ^@ '"') is not false

                when event.type = 'REASONING_ENCRYPTED_VALUE' then
                    event."entityId"::text ^@ '"' and event."encryptedValue"::text ^@ '"' and (event.subtype::text ^@ '"') is not false

                when event.type = 'MESSAGES_SNAPSHOT' then
                    event.messages::text ^@ '[' and (event.metadata::text ^@ '{') is not false

                when event.type = 'RUN_STARTED' then
                    takes_input[segment] is true or (event.input::text ^@ '{') is not false

                else event.type in ('RUN_FINISHED', 'RUN_ERROR')
            end
        ) is not true;

        -- One more piece of another string that has grown before.

        if event.type in ('TEXT_MESSAGE_CONTENT', 'TOOL_CALL_ARGS', 'REASONING_MESSAGE_CONTENT')
            and is_loaded
            and indexed = node_count
            and lanes is null
        then
            node := agui_internal.fold_find(
                buckets, loaded_ids, loaded_keys, case when event.type = 'TOOL_CALL_ARGS' then 'call ' || event.id else event.id end
            );
            if has_grown[node] and (event.metadata is null or strpos(heads[node], '"\\metadata"') > 0) then
                if event.metadata is not null then
                    piece_nodes := array_append(piece_nodes, -node);
                    pieces := array_append(pieces, event.metadata::text);
                end if;
                if growing <> node then
                    piece_nodes := array_append(piece_nodes, growing);
                    pieces := array_append(pieces, buffer);
                    buffer := '';
                end if;
                growing := node;
                buffer := buffer || event.delta::text || E'\x01';
                grown_type := event.type;
                grown_id := event.id;
                grown_owner := event."subagentRunId"::text;
                continue;
            end if;
        end if;

        grown_type := null;

        -- What it says: actions on the messages, or what it is for the state and the run.

        action := null;
        next_action := null;
        is_call := event.type ^@ 'TOOL_CALL_';
        id := event.id;
        delta := event.delta;
        metadata := event.metadata;

        -- Whether there is a member that is null, or one that is no field, only the event as it is tells.
        if event.type = 'STATE_SNAPSHOT' and event.snapshot is null or event.type like '%\_CHUNK' and event.delta is null then
            if raws_seq is distinct from event.first_seq then
                raws := array(
                    select json_array_elements(agui_internal.json_guarded(batch.events))
                    from (
                        select given
                        where given is not null
                        union all
                        select stored.events
                        from agui.batch as stored
                        where stored.thread_key = fold_events.thread_key and stored.first_seq = event.first_seq
                    ) as batch (events)
                );
                raws_seq := event.first_seq;
            end if;
            raw := raws[event.ordinality];
        end if;

        case
            when event.type in ('TEXT_MESSAGE_CONTENT', 'REASONING_MESSAGE_CONTENT', 'TOOL_CALL_ARGS') then
                action := 'grow';

            when event.type = 'STATE_DELTA' then
                state_patches := array_append(
                    state_patches,
                    case when delta is null and event.patch::text ^@ '{' then '[' || event.patch::text || ']' else coalesce(delta, event.patch::text) end
                );

            when event.type in ('ACTIVITY_DELTA', 'ACTIVITY_SNAPSHOT', 'ACTIVITY') then
                activity_type := event."activityType";
                content := case event.type when 'ACTIVITY' then event.snapshot when 'ACTIVITY_SNAPSHOT' then event.content end;
                patch := case
                    when event.type = 'ACTIVITY' and event.patch::text ^@ '{' then '[' || event.patch::text || ']'
                    when event.type = 'ACTIVITY_DELTA' then coalesce(event.patch::text, '[]')
                    when event.type = 'ACTIVITY' then event.patch::text
                end;
                replaces := event.type = 'ACTIVITY' or event.replace::text is distinct from 'false';
                action := case when content is not null then 'show activity' else 'patch activity' end;
                next_action := case when content is not null and patch is not null then 'patch activity' end;

            when event.type in ('TEXT_MESSAGE_CHUNK', 'TOOL_CALL_CHUNK', 'REASONING_MESSAGE_CHUNK') then
                chunk := agui_internal.fold_chunk(
                    lanes,
                    case event.type when 'TEXT_MESSAGE_CHUNK' then 'text' when 'TOOL_CALL_CHUNK' then 'tool' else 'reasoning' end,
                    id,
                    event."subagentRunId"::text
                );
                continue when chunk.id is null or is_call and event."toolCallName" is null and not chunk.goes_on;
                lanes := chunk.lanes;
                id := chunk.id;
                action := case when chunk.goes_on then 'grow' when is_call then 'start call' else 'start message' end;
                if chunk.goes_on then
                    continue when delta is null and not agui_internal.fold_chunk_has_content(raw);
                elsif delta is not null or raw -> 'rawEvent' is not null then
                    next_action := 'grow';
                end if;
                delta := coalesce(delta, '""');

            when event.type in ('TEXT_MESSAGE_START', 'REASONING_MESSAGE_START') then
                action := 'start message';

            when event.type = 'TOOL_CALL_START' then
                action := 'start call';

            when event.type in ('TEXT_MESSAGE_END', 'REASONING_MESSAGE_END', 'TOOL_CALL_END') then
                action := case when metadata is not null then 'merge' end;

            when event.type = 'TOOL_CALL_RESULT' then
                action := 'add result';

            when event.type = 'STATE_SNAPSHOT' then
                content := coalesce(event.snapshot, raw -> 'snapshot', raw -> 'state');
                continue when content is null;
                state := content;
                state_patches := '{}';

            when event.type = 'RUN_STARTED' then
                -- A run begins with its input: messages, of which the new ones are added, and a state.
                input := event.input;
                if takes_input[segment] then  -- the one that is stored beside the events
                    takes_input[segment] := false;
                    select agui_internal.json_guarded(beside.input) into input
                    from agui.run_input as beside
                    where beside.thread_key = fold_events.thread_key and beside.run_no = run_nos[segment];
                end if;
                messages := input -> 'messages';
                continue when json_typeof(messages) not in ('array', 'null');
                inputs := case when messages::text ^@ '[' then agui_internal.fold_message_list(messages) end;
                input_no := 0;
                action := case when cardinality(inputs) > 0 then 'add input' end;
                content := input -> 'state';
                if content <> 'null' then
                    state := content;
                    state_patches := '{}';
                end if;

            when event.type = 'RUN_FINISHED' then
                if json_typeof(event.outcome) = 'object'
                    and agui_internal.json_string_token((event.outcome -> 'type')::text) = '"interrupt"'
                then
                    continue when json_typeof(event.outcome -> 'interrupts') is distinct from 'array';
                    result.interrupts := agui_internal.fold_interrupts(event.outcome -> 'interrupts');
                else
                    result.interrupts := '[]';
                end if;

            when event.type = 'MESSAGES_SNAPSHOT' then
                action := 'list messages';

            when event.type = 'REASONING_ENCRYPTED_VALUE' then
                id := event."entityId";
                is_call := (event.subtype::text = '"tool-call"') is true;
                metadata := null;
                action := 'encrypt';

            else
                -- It does no more than close its lane.
                null;
        end case;

        -- The streams of chunks that end with it.

        if lanes is not null then
            lanes := case
                when event.type in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR', 'MESSAGES_SNAPSHOT') then null
                when event.type like '%\_CHUNK'
                    or event.type ^@ 'ACTIVITY'
                    or event.type = 'REASONING_ENCRYPTED_VALUE'
                    or event.type ^@ 'SUBAGENT_' and event."subagentRunId" is null
                    then lanes
                else agui_internal.fold_close_lane(lanes, event."subagentRunId"::text)
            end;
        end if;

        -- What that does to the messages: one action, or several where the event stands for several.

        while action is not null loop
            touched := null;
            added := null;
            insert_after := null;
            detaches := false;

            -- A list of all messages works on the fold as a whole.

            if action = 'list messages' then
                if is_loaded then
                    result := agui_internal.fold_settle(
                        result, in_place, first_node, following, same_as, keys, numbers, roles, bodies, heads, contents, documents,
                        parents, cleared, piece_nodes, pieces, growing, buffer, patched_nodes, patches
                    );
                    is_loaded := false;
                end if;
                result := agui_internal.fold_snapshot_messages(result, event.messages, event.metadata);
                exit;
            end if;

            -- Load what the fold starts from.

            if not is_loaded then
                numbers := result.message_nos;
                roles := result.roles;
                bodies := result.bodies;
                heads := '{}';
                contents := '{}';
                documents := '{}';
                parents := '{}';
                following := '{}';
                same_as := '{}';
                cleared := '{}';
                piece_nodes := '{}';
                pieces := '{}';
                patched_nodes := '{}';
                patches := '{}';
                has_grown := '{}';
                keys := '{}';
                growing := null;
                buffer := '';
                loaded_count := cardinality(bodies);
                node_count := loaded_count;
                first_node := case when node_count > 0 then 1 end;
                last_node := nullif(node_count, 0);
                in_place := node_count;
                is_linked := false;
                buckets := '{}';
                indexed := node_count;
                loaded_ids := result.message_ids;
                -- Such an id may have stayed guarded, so it does not say enough.
                loaded_keys := case
                    when strpos(array_to_string(loaded_ids, ''), '\') > 0 then agui_internal.fold_loaded_keys(loaded_ids, result.bodies)
                end;
                misses := 0;
                listed := 0;
                has_unlisted := loaded_count > 0;
                lists_calls := false;
                loaded_text := null;
                call_searches := 0;
                result_owner := null;
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
                    following := array(select generate_series(2, loaded_count));
                    is_linked := true;
                end if;
                is_loaded := true;
            end if;

            -- Find the first node that has the id.

            if action = 'add input' then
                input_no := input_no + 1;
                content := inputs[input_no];
                id := content::json -> 'id';
                id := case when id ^@ '"' then agui_internal.json_string_token(id) end;
                next_action := case when input_no < cardinality(inputs) then 'add input' end;
            end if;
            key := case when is_call then 'call ' || id else id end;

            loop
                while indexed < node_count loop
                    indexed := indexed + 1;
                    continue when keys[indexed] is null;
                    node := agui_internal.fold_find(buckets, loaded_ids, loaded_keys, keys[indexed]);
                    -- Of several with one id the first in the conversation counts, which is the newer one where it was put in between.
                    other := following[indexed];
                    while other <> node loop
                        other := following[other];
                    end loop;
                    if node is null or other = node then
                        bucket := agui_internal.fold_bucket(keys[indexed]);
                        buckets[bucket] := coalesce(buckets[bucket], '{}') || jsonb_build_object(keys[indexed], indexed);
                    end if;
                end loop;

                node := agui_internal.fold_find(buckets, loaded_ids, loaded_keys, key);
                exit when not is_call or not has_unlisted or node is not null and lists_calls is not true;

                -- Perhaps a message that came whole has the call, or gets another one. To look for the id takes a part of listing all.
                if lists_calls is not true then
                    if loaded_text is null then
                        loaded_text := array_to_string(result.bodies, '');
                        -- An escape can hide an id, but letters are rarely written as escapes.
                        lists_calls := strpos(loaded_text, '\u00') > 0
                            and loaded_text ~ '\\u00(2[dD]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])';
                    end if;
                    call_searches := call_searches + 1;
                    lists_calls := lists_calls
                        or call_searches > 40
                        or strpos(loaded_text, substr(id, 2, length(id) - 2)) > 0
                        or id !~ '^"[A-Za-z0-9_-]*"$'
                        or action = 'start call'
                            and agui_internal.fold_find(buckets, loaded_ids, loaded_keys, event."parentMessageId"::text) <= loaded_count;
                    exit when lists_calls is not true;
                end if;

                while listed < node_count loop
                    listed := listed + 1;
                    continue when parents[listed] is not null or same_as[listed] is not null;
                    calls := agui_internal.fold_calls_in(bodies[listed], heads[listed]);
                    continue when (calls::text ^@ '[') is not true;
                    for part in
                        select call.value, agui_internal.json_string_token((call.value -> 'id')::text) as id
                        from json_array_elements(calls) with ordinality as call (value, position)
                        order by call.position
                    loop
                        node_count := node_count + 1;
                        keys[node_count] := case when part.id ^@ '"' then 'call ' || part.id end;
                        parents[node_count] := listed;
                        bodies[node_count] := part.value;
                    end loop;
                end loop;
                has_unlisted := false;
                lists_calls := false;
            end loop;

            if node is null then
                misses := misses + 1;
                if misses > 30 and loaded_keys is null then
                    loaded_keys := agui_internal.fold_loaded_keys(loaded_ids, result.bodies);
                end if;
            end if;

            -- Make what is new, or say which node changes.

            case action
                when 'start message' then
                    if node is null then
                        node_count := node_count + 1;
                        added := node_count;
                        touched := node_count;
                        keys[added] := id;
                        roles[added] := case
                            when event.type ^@ 'REASONING' then 'reasoning'
                            else coalesce(agui_internal.json_string_text(event.role::text), 'assistant')
                        end;
                        heads[added] := '{' || concat_ws(
                            ',',
                            '"id":' || id,
                            '"role":' || case when event.type ^@ 'REASONING' then '"reasoning"' else coalesce(event.role::text, '"assistant"') end,
                            '"content":"\\content"',
                            '"name":' || case when event.type ^@ 'TEXT' then event.name::text end,
                            '"subagentRunId":' || event."subagentRunId"::text
                        ) || '}';
                        contents[added] := '""';
                    elsif metadata is not null and roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when 'grow' then
                    touched := case
                        when has_grown[node] then node
                        when is_call then case when (coalesce(heads[node], bodies[node])::json -> 'function')::text ^@ '{' then node end
                        when roles[node] is distinct from 'activity' then node
                    end;
                    -- An empty piece changes nothing, but for a content that is no string yet.
                    if delta = '""'
                        and metadata is null
                        and (is_call or coalesce(contents[node], (agui_internal.json_guard(bodies[node])::json -> 'content')::text) ^@ '"')
                    then
                        touched := null;
                    end if;

                when 'merge' then
                    if roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when 'start call' then
                    if node is not null then
                        -- It is renamed. A call without a function takes nothing.
                        known := coalesce(heads[node], bodies[node]);
                        if json_typeof(known -> 'function') = 'object'
                            and (
                                metadata is not null
                                or agui_internal.json_string_token((known #> '{function,name}')::text) is distinct from event."toolCallName"::text
                            )
                        then
                            touched := node;
                        end if;
                    else
                        parent := case
                            when event."parentMessageId"::text <> '""'
                                then agui_internal.fold_find(buckets, loaded_ids, loaded_keys, event."parentMessageId"::text)
                        end;
                        if parent is null or roles[parent] is distinct from 'assistant' then
                            node_count := node_count + 1;
                            added := node_count;
                            keys[added] := case
                                when parent is null and event."parentMessageId"::text <> '""' then event."parentMessageId"::text
                                else id
                            end;
                            roles[added] := 'assistant';
                            heads[added] := '{' || concat_ws(
                                ',',
                                '"id":' || keys[added],
                                '"role":"assistant"',
                                '"toolCalls":"\\calls"',
                                '"subagentRunId":' || case
                                    when agui_internal.fold_find(buckets, loaded_ids, loaded_keys, keys[added]) is null
                                        then event."subagentRunId"::text
                                end
                            ) || '}';
                            parent := added;
                        end if;
                        node_count := node_count + 1;
                        touched := node_count;
                        keys[touched] := key;
                        parents[touched] := parent;
                        heads[touched] := '{"id":' || id || ',"type":"function","function":{"name":' || event."toolCallName"::text
                            || ',"arguments":"\\content"}}';
                        contents[touched] := '""';
                    end if;

                when 'add result' then
                    -- Behind the assistant message that has the call and the results that follow it; at the end when none has the call.
                    if node is not null and roles[parents[node]] is distinct from 'assistant' then
                        node := agui_internal.fold_assistant_call(key, keys, roles, parents, first_node, following, is_linked, loaded_count);
                    end if;
                    if node is not null then
                        if not is_linked and parents[node] < loaded_count then
                            following := array(select generate_series(2, loaded_count)) || following[loaded_count :];
                            is_linked := true;
                        end if;
                        insert_after := case when result_owner = parents[node] then result_last else parents[node] end;
                        while roles[following[insert_after]] = 'tool' loop
                            insert_after := following[insert_after];
                        end loop;
                    end if;
                    node_count := node_count + 1;
                    added := node_count;
                    touched := case when metadata is not null then added end;
                    keys[added] := event."messageId"::text;
                    roles[added] := coalesce(nullif(agui_internal.json_string_text(event.role::text), ''), 'tool');
                    bodies[added] := agui_internal.json_unguard(
                        '{' || concat_ws(
                            ',',
                            '"id":' || event."messageId"::text,
                            '"role":' || coalesce(nullif(event.role::text, '""'), '"tool"'),
                            '"content":' || event.content::text,
                            '"toolCallId":' || id,
                            '"subagentRunId":' || event."subagentRunId"::text
                        ) || '}'
                    );
                    if node is not null then
                        result_owner := case when roles[added] = 'tool' then parents[node] end;
                        result_last := added;
                    end if;

                when 'encrypt' then
                    if is_call and node is not null and roles[parents[node]] is distinct from 'assistant' then
                        node := agui_internal.fold_assistant_call(key, keys, roles, parents, first_node, following, is_linked, loaded_count);
                    end if;
                    if roles[node] is distinct from 'activity' then
                        touched := node;
                    end if;

                when 'add input' then
                    if node is null then
                        node_count := node_count + 1;
                        added := node_count;
                        keys[added] := id;
                        roles[added] := agui_internal.json_string_text((content::json -> 'role')::text);
                        bodies[added] := agui_internal.json_unguard(content);
                        if strpos(content, 'toolCalls') > 0 or strpos(content, '\u') > 0 then
                            -- All calls are listed then, in the order of the conversation.
                            has_unlisted := true;
                            lists_calls := true;
                        end if;
                    end if;

                when 'show activity' then
                    if replaces and node = any (same_as) then
                        detaches := true;
                    elsif node is null or replaces and roles[node] is distinct from 'activity' then
                        touched := node;
                        if node is null then
                            node_count := node_count + 1;
                            added := node_count;
                            touched := node_count;
                            keys[added] := id;
                        else
                            -- A message of another role gives way, with all that it had.
                            if growing = node then
                                growing := null;
                                buffer := '';
                            end if;
                            cleared[node] := cardinality(pieces);
                            has_grown[node] := false;
                            numbers[node] := null;
                            bodies[node] := null;
                            documents[node] := null;
                            result_owner := null;
                            if node = any (parents) then
                                for gone in node + 1 .. node_count loop
                                    continue when parents[gone] is distinct from node;
                                    parents[gone] := 0;
                                    key := keys[gone];
                                    keys[gone] := null;
                                    if agui_internal.fold_find(buckets, loaded_ids, loaded_keys, key) = gone then
                                        other := array_position(keys, key);
                                        bucket := agui_internal.fold_bucket(key);
                                        buckets[bucket] := buckets[bucket] - key || case
                                            when other is null then '{}'
                                            else jsonb_build_object(key, other)
                                        end;
                                    end if;
                                end loop;
                            end if;
                        end if;
                        roles[touched] := 'activity';
                        heads[touched] := '{' || concat_ws(
                            ',',
                            '"id":' || id,
                            '"role":"activity"',
                            '"activityType":' || activity_type,
                            '"content":"\\content"',
                            '"subagentRunId":' || event."subagentRunId"::text
                        ) || '}';
                        contents[touched] := content;
                    elsif roles[node] = 'activity' and (replaces or metadata is not null) then
                        touched := node;
                    end if;

                when 'patch activity' then
                    if roles[node] = 'activity' then
                        touched := node;
                    end if;
            end case;

            -- Give a new message its place: at the end, but for the result of a tool call.

            if added is not null then
                if insert_after <> last_node then
                    following[added] := following[insert_after];
                    following[insert_after] := added;
                    if insert_after < in_place then
                        in_place := 0;
                    end if;
                else
                    if last_node is null then
                        first_node := added;
                    else
                        following[last_node] := added;
                    end if;
                    last_node := added;
                end if;
            end if;

            -- Change the node. What was in one piece so far, and the message of a tool call too, is taken apart first.

            if touched is not null then
                other := touched;
                while other is not null loop
                    numbers[other] := null;
                    if heads[other] is null then
                        part := agui_internal.fold_open(
                            case when parents[other] is null then agui_internal.json_guard(bodies[other]) else bodies[other] end,
                            parents[other] is not null
                        );
                        bodies[other] := null;
                        heads[other] := part.head;
                        contents[other] := part.content;
                        if part.metadata is not null then
                            piece_nodes := array_append(piece_nodes, -other);
                            pieces := array_append(pieces, part.metadata);
                        end if;
                    end if;
                    other := parents[other];
                end loop;
                if parents[touched] is not null and strpos(heads[parents[touched]], '"\\calls"') = 0 then
                    heads[parents[touched]] := agui_internal.fold_member(heads[parents[touched]], 'toolCalls', '"\\calls"');
                end if;

                case action
                    when 'grow' then
                        if contents[touched] is null then
                            heads[touched] := case
                                when is_call then agui_internal.fold_member(
                                    heads[touched],
                                    'function',
                                    agui_internal.fold_member((heads[touched]::json -> 'function')::text, 'arguments', '"\\content"')
                                )
                                else agui_internal.fold_member(heads[touched], 'content', '"\\content"')
                            end;
                            contents[touched] := '""';
                        end if;
                        if growing <> touched then
                            piece_nodes := array_append(piece_nodes, growing);
                            pieces := array_append(pieces, buffer);
                            buffer := '';
                        end if;
                        growing := touched;
                        has_grown[touched] := true;
                        buffer := buffer || delta || E'\x01';
                        grown_type := event.type;
                        grown_id := event.id;
                        grown_owner := event."subagentRunId"::text;

                    when 'start call' then
                        if node is not null
                            and agui_internal.json_string_token((heads[node]::json #> '{function,name}')::text) is distinct from event."toolCallName"::text
                        then
                            heads[node] := agui_internal.fold_member(
                                heads[node],
                                'function',
                                agui_internal.json_member_set((heads[node]::json -> 'function')::text, 'name', event."toolCallName"::text)
                            );
                        end if;

                    when 'encrypt' then
                        heads[touched] := agui_internal.fold_member(heads[touched], 'encryptedValue', event."encryptedValue"::text);

                    when 'show activity' then
                        if replaces and node is not null then
                            heads[node] := agui_internal.fold_member(heads[node], 'activityType', activity_type);
                            heads[node] := agui_internal.fold_member(heads[node], 'content', '"\\content"');
                            heads[node] := agui_internal.fold_member(heads[node], 'subagentRunId', null);
                            heads[node] := agui_internal.fold_member(heads[node], 'subagentRunId', event."subagentRunId"::text);
                            contents[node] := content;
                            documents[node] := null;
                            patched_nodes := array_replace(patched_nodes, node, 0);
                        end if;

                    else
                        null;
                end case;

                if metadata is not null and next_action is null then
                    if strpos(heads[touched], '"\\metadata"') = 0 then
                        heads[touched] := agui_internal.fold_member(heads[touched], 'metadata', '"\\metadata"');
                    end if;
                    piece_nodes := array_append(piece_nodes, -touched);
                    pieces := array_append(pieces, metadata);
                end if;

                -- An activity is patched at the end, by all of its patches together, unless something else depends on whether this one
                -- succeeds, or its path is "" and what it makes null is an empty object for the next one.
                if action <> 'patch activity' then
                    null;
                elsif contents[touched] is not null
                    and (heads[touched]::json -> 'activityType')::text = activity_type
                    and strpos(patch, '""') = 0
                    and cardinality(same_as) = 0
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
                    if part.applied > 0 and touched = any (same_as) then
                        detaches := true;
                        metadata := null;
                    elsif part.applied > 0 then
                        documents[touched] := part.document;
                        heads[touched] := agui_internal.fold_member(heads[touched], 'content', '"\\content"');
                        heads[touched] := agui_internal.fold_member(heads[touched], 'activityType', activity_type);
                    end if;
                end if;
            end if;

            -- Where a message that stands at several places changes at the first one alone, that one becomes a message of its own; then once more.

            if detaches then
                result := agui_internal.fold_settle(
                    result, in_place, first_node, following, same_as, keys, numbers, roles, bodies, heads, contents, documents, parents,
                    cleared, piece_nodes, pieces, growing, buffer, patched_nodes, patches
                );
                is_loaded := false;
                result.message_nos[array_position(agui_internal.fold_keys(result.message_ids, result.bodies), id)] := null;
                continue;
            end if;

            action := next_action;
            next_action := null;
        end loop;
    end loop events;
    -- The variable keeps the last event of the loop; null: there was none.
    result.through_seq := coalesce(event.first_seq + event.ordinality - 1, result.through_seq);
    end loop;

    if is_loaded then
        result := agui_internal.fold_settle(
            result, in_place, first_node, following, same_as, keys, numbers, roles, bodies, heads, contents, documents, parents,
            cleared, piece_nodes, pieces, growing, buffer, patched_nodes, patches
        );
    end if;
    result.state := coalesce(agui_internal.json_unguard(state), result.state);
    result.state_patches := state_patches;
    result.lanes := agui_internal.json_unguard(lanes::text);
    return result;
end
$function$;

comment on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[]) is
    'What a lineage means, from what it meant before: applies the events of its runs, one segment after the other. Segment i is the events '
    'of run run_nos[i] with after_seqs[i] < seq <= through_seqs[i]; with a run number of null, those of the JSON array given. Where takes_input '
    'says so, its first RUN_STARTED takes the input that is stored beside the events. Patches of the state are left to agui_internal.fold_patched.';

revoke execute on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[]) from public;
