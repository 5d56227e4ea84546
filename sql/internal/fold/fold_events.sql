-- The reducer in SQL: applies the following events to the result of a lineage so far.
-- agui_internal.fold_steps translates the events to steps. This function executes each step: load,
-- find, create, place, change. agui_internal.fold_settle writes the result.
-- The conversation is taken apart into nodes: messages and tool calls, numbered in the order of
-- their creation, those that were loaded first. The properties of the nodes are in arrays, one for
-- each property. PL/pgSQL changes an element of an array in place, but copies an array that it
-- passes to a function which changes it. So all code that changes nodes is in this function, and
-- the functions that it calls only read them. No step copies a large text.
-- Invariants between two steps: If several messages or calls have one id, agui_internal.fold_find
-- returns the first one in the conversation. The tool calls of a message are in the order of their
-- nodes. The first `untouched` messages are those of `result`, in their places.
-- If the fold has a time limit, the last segment is folded in pieces, each by a call of
-- agui_internal.fold_steps, which creates all of its steps before it returns the first one. Nodes
-- are kept from one piece to the next. Pending patches are applied between two pieces when there
-- are many, so that little is left to do when the time is over.
create or replace function agui_internal.fold_events(
    start agui_internal.fold,
    thread_key uuid,
    run_nos int[],
    after_seqs bigint[],
    through_seqs bigint[],
    given json default null,
    takes_input boolean[] default null,
    stop_at timestamptz default null
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    result agui_internal.fold := start;
    step   agui_internal.fold_step;
    state  text;               -- the new value that a step gave it
    state_patches text[] := start.state_patches;

    -- The limits, and what counts towards them.
    limits constant agui_internal.fold_limits := agui_internal.limits_of_folds();
    size        bigint := start.size;   -- at the last check, minus what the run had brought by then
    spent       bigint := start.spent;  -- fuel used by the run, except for its events
    state_costs boolean := false;       -- some pending patches may use fuel
    nodes_cost  boolean := false;
    copied_ids  text[] := '{}';         -- changed by patches with copies since the last check

    -- Pieces of the last segment, if there is a time limit.
    last     int := cardinality(run_nos);
    until    constant bigint := through_seqs[cardinality(run_nos)];
    goes_on  boolean;
    waiting  bigint := 0;  -- size of the pending patches, in bytes
    settles  boolean;

    -- Fetched one by one: a loop over a query prefetches up to 50 rows, and each may be a state as
    -- large as a batch.
    steps cursor for
        select * from agui_internal.fold_steps(thread_key, run_nos, after_seqs, through_seqs, given, takes_input, result.lanes, limits);

    -- The conversation, while it is taken apart.
    is_loaded     boolean := false;
    loaded_count  int;
    node_count    int;
    message_count int;
    first_node    int;
    last_node     int;
    following     int[];        -- for a message: the node of the next one
    untouched     int;
    changes       agui_internal.fold_change[];

    -- Nodes. The key is the id of a message, or 'call ' and the id of a tool call; null if there is
    -- none, and for a loaded message.
    keys       text[];
    roles      text[];         -- for messages
    parents    int[];          -- for a call: the node of its message, 0 if that was removed
    numbers    int[];          -- for a loaded, unchanged message: its stored version
    same_as    int[];          -- for a second place of a message: the node of the first place
    shared     boolean[];      -- other nodes are the same message
    -- the whole (guarded for a call) until it changes, then null and the following:
    bodies     text[];
    -- the members that stay, with marks in place of the others (agui_internal.fold_open)
    heads      text[];
    -- what the string began with, or the content of an activity, without pending patches
    contents   text[];
    encrypted  text[];         -- the encryptedValue that a step set
    types      text[];         -- for an activity that is taken apart: its activityType
    names      text[];         -- for a call whose name was read: the name; '' if it has no function
    has_text   boolean[];      -- for an inspected message in one piece: its content is a string
    grows      boolean[];      -- its string has grown, so it has more pieces
    content_since  int[];      -- changes up to this one do not count
    metadata_since int[];
    last_patch int[];          -- the last pending one
    costs      boolean[];      -- a pending one may use fuel
    -- parts of heads that are too long to be copied in each step (agui_internal.fold_shrink)
    large      text[];

    -- The calls of a message: the last one and, for a call, the previous one.
    last_call   int[];
    call_before int[];

    -- The order of the conversation as numbers, once a message was inserted in between; and for an
    -- assistant message the last of the results after it, as far as they were searched since
    -- messages replaced others.
    orders      bigint[];
    result_last int[];
    result_era  int[];
    era         int;

    -- The index (agui_internal.fold_find). Loaded messages are searched by their ids until indexing
    -- them pays.
    seed         constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    buckets      jsonb[];
    indexed      int;          -- nodes up to this one are indexed, except those that were loaded
    loaded_ids   text[];
    loaded_keys  jsonb;
    searches     int;
    next_same    int[];        -- for a call: the next one with its id
    last_same    int[];        -- for the first of those: the last one

    -- The tool calls of messages that came whole get nodes only when a step needs them.
    listed       int;          -- the calls of messages up to this node have nodes
    has_unlisted boolean;      -- other calls exist without nodes
    lists_calls  boolean;      -- nodes are needed for them
    loaded_text  text;         -- the text of the loaded messages, to search it for the id of a call
    text_searches int;

    -- What the current step does.
    key          text;
    node         int;          -- the first node with its id
    parent       int;
    added        int;          -- the message that it adds
    touched      int;          -- the node that it changes
    insert_after int;
    id           text;
    made         record;
    detaches     boolean;
    place        int;
    first        int;          -- the first of several calls with one id
    is_first     boolean;
    part         record;
begin
    <<pieces>>
    loop
    if stop_at is not null then
        through_seqs[last] := agui_internal.fold_piece_end(thread_key, run_nos[last], after_seqs[last], until);
    end if;
    goes_on := false;
    open steps;
    loop
        fetch steps into step;
        exit when not found;
        case step.action
            when 'set state' then
                if state_costs then
                    -- Their fuel counts even if nothing of their result remains.
                    result.state := coalesce(agui_internal.json_unguard(state), result.state);
                    result.state_patches := state_patches;
                    result.spent := spent;
                    spent := (agui_internal.fold_patched(result, limits)).spent;
                    state_costs := false;
                end if;
                state := step.content;
                state_patches := '{}';
                continue;
            when 'patch state' then
                state_patches := array_append(state_patches, step.content);
                state_costs := state_costs or step.costs;
                waiting := waiting + octet_length(step.content);
                if step.copies and array_position(copied_ids, '') is null then
                    copied_ids := array_append(copied_ids, '');
                    size := size + limits.document_bytes;
                end if;
                continue;
            when 'set interrupts' then
                result.interrupts := step.content;
                continue;
            when 'refuse lanes' then
                perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_lanes', limits.fold_lanes, limits.fold_lanes + 1);
            when 'list messages' then
                detaches := is_loaded;
            when 'look', 'end run', 'end' then
                settles := false;
                if step.action = 'end' and through_seqs[last] < until then
                    -- Before its RUN_STARTED has come, the result of a run cannot be continued
                    -- from.
                    takes_input[last] := takes_input[last] and agui_internal.awaits_start(thread_key, run_nos[last], through_seqs[last]);
                    if takes_input[last] or clock_timestamp() < stop_at then
                        step.action := 'end piece';
                        goes_on := true;
                        settles := waiting > (size + step.brought) / 4;
                    end if;
                end if;
                detaches := is_loaded and (
                    step.action = 'end'
                    or step.action = 'end run' and nodes_cost
                    or settles
                    or size + step.brought > limits.fold_bytes
                );
            else
                detaches := false;
        end case;

        <<attempt>>
        loop
            -- Put the nodes back together if a step concerns the whole conversation.

            if detaches then
                result.spent := spent;
                result := agui_internal.fold_settle(
                    result, first_node, following, untouched, loaded_count, node_count, changes, limits,
                    keys, roles, parents, numbers, same_as, shared, bodies, heads, contents, encrypted, types, content_since, metadata_since, large
                );
                spent := result.spent;
                if spent > limits.fold_fuel then
                    perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_fuel', limits.fold_fuel, spent);
                end if;
                is_loaded := false;
                nodes_cost := false;
                if step.action in ('show activity', 'patch activity') then
                    -- A message that has several places changes only at the first one: it becomes a
                    -- separate message there.
                    result.message_nos[array_position(agui_internal.fold_keys(result.message_ids, result.bodies), step.id)] := null;
                    detaches := false;
                end if;
            end if;

            case step.action
                when 'list messages' then
                    spent := spent + 64 * cardinality(result.message_ids);
                    if spent > limits.fold_fuel then
                        perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_fuel', limits.fold_fuel, spent);
                    end if;
                    result := agui_internal.fold_snapshot_messages(result, step.messages, step.metadata::json);
                    if cardinality(result.message_ids) > limits.fold_messages then
                        perform agui_internal.refuse_fold(
                            thread_key, run_nos, step.seq, 'fold_messages', limits.fold_messages, cardinality(result.message_ids)
                        );
                    end if;
                    exit attempt;

                when 'look', 'end run', 'end piece', 'end' then
                    if step.action in ('end run', 'end') and state_costs or settles or size + step.brought > limits.fold_bytes then
                        result.state := coalesce(agui_internal.json_unguard(state), result.state);
                        result.state_patches := state_patches;
                        result.spent := spent;
                        result := agui_internal.fold_patched(result, limits);
                        spent := result.spent;
                        state := null;
                        state_patches := '{}';
                        state_costs := false;
                    end if;
                    if size + step.brought > limits.fold_bytes then
                        size := agui_internal.fold_size(result) - step.brought;
                        if size + step.brought > limits.fold_bytes then
                            perform agui_internal.refuse_fold(
                                thread_key, run_nos, step.seq, 'fold_bytes', limits.fold_bytes, size + step.brought
                            );
                        end if;
                        spent := spent + size + step.brought;
                        copied_ids := '{}';
                        waiting := 0;
                    elsif settles then
                        size := agui_internal.fold_size(result) - step.brought;
                        copied_ids := '{}';
                        waiting := 0;
                    end if;
                    if spent + step.brought > limits.fold_fuel then
                        perform agui_internal.refuse_fold(
                            thread_key, run_nos, step.seq, 'fold_fuel', limits.fold_fuel, spent + step.brought
                        );
                    end if;
                    if step.action = 'end run' then
                        size := size + step.brought;
                        spent := 0;
                        copied_ids := '{}';
                    elsif step.action = 'end piece' then
                        size := size + step.brought;
                        spent := spent + step.brought;
                        result.lanes := step.content;
                        result.through_seq := coalesce(step.seq, result.through_seq);
                    elsif step.action = 'end' then
                        result.lanes := step.content;
                        result.through_seq := coalesce(step.seq, result.through_seq);
                        result.size := size + step.brought;
                        result.spent := spent + step.brought;
                    end if;
                    exit attempt;

                else
                    null;
            end case;

            -- Load.

            if not is_loaded then
                loaded_count := cardinality(result.bodies);
                node_count := loaded_count;
                message_count := loaded_count;
                first_node := case when loaded_count > 0 then 1 end;
                last_node := nullif(loaded_count, 0);
                following := array(select generate_series(2, loaded_count));
                changes := '{}';
                keys := array_fill(null::text, array[loaded_count]);
                roles := result.roles;
                numbers := result.message_nos;
                bodies := result.bodies;
                heads := keys;
                parents := array[null];
                contents := array[null];
                encrypted := array[null];
                types := array[null];
                names := array[null];
                has_text := array[null];
                grows := array[null];
                content_since := array[null];
                metadata_since := array[null];
                last_patch := array[null];
                costs := array[null];
                large := '{}';
                last_call := array[null];
                call_before := array[null];
                orders := null;
                result_last := array[null];
                result_era := array[null];
                era := 1;
                same_as := null;
                shared := null;
                if (select count(distinct number) < count(number) from unnest(numbers) as number) then
                    same_as := array[null];
                    shared := array[null];
                    for part in
                        select repeated.node, repeated.first_node
                        from (
                            select message.position as node, min(message.position) over (partition by message.number) as first_node
                            from unnest(numbers) with ordinality as message (number, position)
                            where message.number is not null
                        ) as repeated
                        where repeated.node > repeated.first_node
                    loop
                        same_as[part.node] := part.first_node;
                        shared[part.first_node] := true;
                    end loop;
                end if;
                -- A message that has several places gets a new number.
                untouched := case when shared is null then loaded_count else 0 end;
                buckets := '{}';
                indexed := loaded_count;
                loaded_ids := result.message_ids;
                -- Such an id may still be guarded, so it is ambiguous.
                loaded_keys := case
                    when strpos(array_to_string(loaded_ids, ''), '\') > 0 then agui_internal.fold_loaded_keys(loaded_ids, result.bodies)
                end;
                searches := 0;
                next_same := array[null];
                last_same := array[null];
                listed := 0;
                has_unlisted := loaded_count > 0;
                lists_calls := false;
                loaded_text := null;
                text_searches := 0;
                is_loaded := true;
            end if;

            -- Find the first node with the id.

            key := case when step.is_call then 'call ' || step.id else step.id end;
            loop
                while indexed < node_count loop
                    indexed := indexed + 1;
                    id := keys[indexed];
                    continue when id is null;
                    node := agui_internal.fold_find(buckets, loaded_ids, loaded_keys, id, seed);
                    -- Of several with one id the first in the conversation counts. That is the
                    -- newer one if it was inserted in between.
                    if node is null or orders is not null and orders[indexed] < orders[node] then
                        place := agui_internal.fold_bucket(id, seed);
                        buckets[place] := coalesce(buckets[place], '{}') || jsonb_build_object(id, indexed);
                    elsif parents[indexed] > 0 then
                        next_same[coalesce(last_same[node], node)] := indexed;
                        last_same[node] := indexed;
                        -- A message of another role may have the call too. Results and encrypted
                        -- values belong to the first assistant that has it.
                        id := 'assistant ' || id;
                        place := agui_internal.fold_find(buckets, null, null, id, seed);
                        if roles[parents[indexed]] = 'assistant'
                            and (place = 0 or place is null and roles[parents[node]] is distinct from 'assistant')
                        then
                            place := agui_internal.fold_bucket(id, seed);
                            buckets[place] := coalesce(buckets[place], '{}') || jsonb_build_object(id, indexed);
                        end if;
                    end if;
                end loop;

                node := agui_internal.fold_find(buckets, loaded_ids, loaded_keys, key, seed);
                exit when not step.is_call or not has_unlisted or node is not null and not lists_calls;

                -- A message that came whole may have the call, or get a call. Searching for the id
                -- takes a fraction of creating nodes for all calls.
                if not lists_calls then
                    if loaded_text is null then
                        loaded_text := array_to_string(result.bodies, '');
                        -- An escape can hide an id, but letters are rarely escaped.
                        lists_calls := strpos(loaded_text, '\u00') > 0
                            and loaded_text ~ '\\u00(2[dD]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])';
                    end if;
                    text_searches := text_searches + 1;
                    exit when not lists_calls
                        and text_searches <= 40
                        and strpos(loaded_text, substr(step.id, 2, length(step.id) - 2)) = 0
                        and step.id ~ '^"[A-Za-z0-9_-]*"$'
                        and (agui_internal.fold_find(buckets, loaded_ids, loaded_keys, step.parent_id, seed) <= loaded_count) is not true;
                end if;

                for holder in listed + 1 .. node_count loop
                    id := coalesce(bodies[holder], heads[holder]);
                    continue when parents[holder] is not null
                        or same_as[holder] is not null
                        or strpos(id, 'toolCalls') = 0 and strpos(id, '\u') = 0;
                    for part in
                        select * from agui_internal.fold_calls_of(
                            coalesce(agui_internal.json_guard(bodies[holder]), agui_internal.fold_fill(heads[holder], large))
                        )
                    loop
                        node_count := node_count + 1;
                        keys[node_count] := 'call ' || part.id;
                        parents[node_count] := holder;
                        bodies[node_count] := part.body;
                        call_before[node_count] := last_call[holder];
                        last_call[holder] := node_count;
                    end loop;
                end loop;
                listed := node_count;
                has_unlisted := false;
                lists_calls := false;
            end loop;
            if node is null or node <= loaded_count then
                searches := searches + 1;
                if searches > 30 and loaded_keys is null then
                    loaded_keys := agui_internal.fold_loaded_keys(loaded_ids, result.bodies);
                end if;
            end if;

            if node is not null
                and step.is_call
                and step.action in ('add result', 'encrypt')
                and roles[parents[node]] is distinct from 'assistant'
            then
                node := nullif(agui_internal.fold_find(buckets, null, null, 'assistant ' || key, seed), 0);
            end if;

            -- Create the new node, or determine the node to change.

            touched := null;
            added := null;
            insert_after := null;
            case
                when step.action = 'grow' and grows[node] then
                    touched := node;

                when step.action = 'add result' then
                    made := agui_internal.fold_new_message(step, step.parent_id, step.owner);
                    node_count := node_count + 1;
                    keys[node_count] := step.parent_id;
                    roles[node_count] := made.role;
                    bodies[node_count] := made.body;
                    added := node_count;
                    touched := case when step.metadata is not null then added end;
                    -- After the message that has the call and the results that follow it; at the
                    -- end if no message has the call.
                    if node is not null then
                        parent := parents[node];
                        insert_after := case when result_era[parent] = era then result_last[parent] else parent end;
                        while roles[following[insert_after]] = 'tool' loop
                            insert_after := following[insert_after];
                        end loop;
                        result_last[parent] := insert_after;
                        result_era[parent] := era;
                    end if;

                when step.action = 'start call' and node is null then
                    parent := case
                        when step.parent_id <> '""' then agui_internal.fold_find(buckets, loaded_ids, loaded_keys, step.parent_id, seed)
                    end;
                    if parent is null or roles[parent] is distinct from 'assistant' then
                        id := case when parent is null then coalesce(nullif(step.parent_id, '""'), step.id) else step.id end;
                        made := agui_internal.fold_new_message(
                            step, id, case when agui_internal.fold_find(buckets, loaded_ids, loaded_keys, id, seed) is null then step.owner end
                        );
                        node_count := node_count + 1;
                        keys[node_count] := id;
                        roles[node_count] := made.role;
                        heads[node_count] := made.head;
                        added := node_count;
                        parent := added;
                    end if;
                    node_count := node_count + 1;
                    keys[node_count] := key;
                    parents[node_count] := parent;
                    heads[node_count] := '{"id":' || step.id || ',"type":"function","function":{"name":' || step.name || ',"arguments":"\\content"}}';
                    contents[node_count] := '""';
                    names[node_count] := step.name;
                    call_before[node_count] := last_call[parent];
                    last_call[parent] := node_count;
                    touched := node_count;

                when step.action in ('start message', 'add message', 'show activity') and node is null then
                    made := agui_internal.fold_new_message(step, step.id, step.owner);
                    node_count := node_count + 1;
                    keys[node_count] := step.id;
                    roles[node_count] := made.role;
                    added := node_count;
                    touched := case when step.metadata is not null then added end;
                    if step.action = 'add message' then
                        bodies[node_count] := made.body;
                        if strpos(step.content, 'toolCalls') > 0 or strpos(step.content, '\u') > 0 then
                            -- Then nodes for all calls are created, in the order of the
                            -- conversation.
                            has_unlisted := true;
                            lists_calls := true;
                        end if;
                    else
                        heads[node_count] := made.head;
                        contents[node_count] := made.content;
                        if step.action = 'show activity' then
                            types[node_count] := step.activity_type;
                        end if;
                    end if;

                when step.action = 'show activity' and step.replaces and shared[node] then
                    detaches := true;

                when step.action = 'show activity' and step.replaces and roles[node] is distinct from 'activity' then
                    -- The message is replaced, with all that belongs to it.
                    spent := spent + 64 * message_count;
                    era := era + 1;
                    place := last_call[node];
                    while place is not null loop
                        id := keys[place];
                        keys[place] := null;
                        parents[place] := 0;
                        -- Others with its id replace it in the index.
                        if id is not null then
                            is_first := agui_internal.fold_find(buckets, null, null, id, seed) = place;
                            first := next_same[place];
                            if is_first then
                                while parents[first] = 0 loop
                                    first := next_same[first];
                                end loop;
                                if first <> last_same[place] then
                                    last_same[first] := last_same[place];
                                end if;
                                parent := agui_internal.fold_bucket(id, seed);
                                buckets[parent] := buckets[parent] || jsonb_build_object(id, first);
                            end if;
                            id := 'assistant ' || id;
                            parent := agui_internal.fold_find(buckets, null, null, id, seed);
                            if parent = place or is_first and parent is null and first is not null then
                                while parents[first] = 0 or first is not null and roles[parents[first]] is distinct from 'assistant' loop
                                    first := next_same[first];
                                end loop;
                                parent := agui_internal.fold_bucket(id, seed);
                                buckets[parent] := coalesce(buckets[parent], '{}') || jsonb_build_object(id, coalesce(first, 0));
                            end if;
                        end if;
                        place := call_before[place];
                    end loop;
                    made := agui_internal.fold_new_message(step, step.id, step.owner);
                    roles[node] := made.role;
                    numbers[node] := null;
                    bodies[node] := null;
                    heads[node] := made.head;
                    contents[node] := made.content;
                    types[node] := step.activity_type;
                    encrypted[node] := null;
                    grows[node] := null;
                    last_call[node] := null;
                    content_since[node] := cardinality(changes);
                    metadata_since[node] := cardinality(changes);
                    untouched := least(untouched, node - 1);
                    touched := case when step.metadata is not null then node end;

                when node is null then
                    null;

                else
                    -- Check whether the step changes an existing message or tool call. Each message
                    -- is inspected once.
                    if step.action = 'start call' and names[node] is null
                        or step.action = 'grow' and parents[node] is not null and names[node] is null
                    then
                        names[node] := agui_internal.fold_call_name(coalesce(heads[node], bodies[node]), large);
                    elsif step.action = 'grow'
                        and parents[node] is null
                        and has_text[node] is null
                        and step.content = '""'
                        and step.metadata is null
                    then
                        has_text[node] := coalesce(
                            case when heads[node] is null then (agui_internal.json_guard(bodies[node])::json -> 'content')::text else contents[node] end
                                ^@ '"',
                            false
                        );
                    end if;
                    touched := case
                        when case
                            when roles[node] = 'activity'
                                then step.action = 'patch activity' or step.action = 'show activity' and (step.replaces or step.metadata is not null)
                            when step.action = 'start message' then step.metadata is not null
                            when step.action = 'start call' then names[node] <> '' and (step.metadata is not null or names[node] <> step.name)
                            when step.action = 'grow' then case
                                when step.content = '""' and step.metadata is null then parents[node] is null and not has_text[node]
                                else parents[node] is null or names[node] <> ''
                            end
                            else step.action in ('merge', 'encrypt')
                        end
                            then node
                    end;
            end case;

            -- Place a new message: at the end, except for the result of a tool call.

            if added is not null then
                message_count := message_count + 1;
                if message_count > limits.fold_messages then
                    perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_messages', limits.fold_messages, message_count);
                end if;
                if insert_after <> last_node then
                    if orders is null or orders[following[insert_after]] - orders[insert_after] < 2 then
                        orders := array[null];
                        place := first_node;
                        for position in 1 .. message_count - 1 loop
                            orders[place] := position * 1099511627776;  -- room for a million between two
                            place := following[place];
                        end loop;
                    end if;
                    orders[added] := case
                        when made.role = 'tool' then
                            orders[insert_after] + least((orders[following[insert_after]] - orders[insert_after]) / 2, 1048576)
                        else
                            orders[following[insert_after]] - least((orders[following[insert_after]] - orders[insert_after]) / 2, 1048576)
                    end;
                    following[added] := following[insert_after];
                    following[insert_after] := added;
                    untouched := least(untouched, insert_after);
                else
                    if last_node is null then
                        first_node := added;
                    else
                        following[last_node] := added;
                        if orders is not null then
                            orders[added] := orders[last_node] + 1099511627776;
                        end if;
                    end if;
                    last_node := added;
                end if;
            end if;

            -- Change the node. If it is still in one piece, first take it apart, and the message of
            -- a tool call too.

            place := touched;
            while place is not null loop
                if heads[place] is null then
                    part := agui_internal.fold_open(
                        case when parents[place] is null then agui_internal.json_guard(bodies[place]) else bodies[place] end,
                        parents[place] is not null
                    );
                    if part.metadata is not null then
                        changes := array_append(changes, (place, 'merge', part.metadata, null, null)::agui_internal.fold_change);
                    end if;
                    numbers[place] := null;
                    bodies[place] := null;
                    heads[place] := part.head;
                    contents[place] := part.content;
                    types[place] := part.activity_type;
                    untouched := least(untouched, place - 1);
                end if;
                if place <> touched and strpos(heads[place], '"\\calls"') = 0 then
                    heads[place] := agui_internal.fold_member(heads[place], 'toolCalls', '"\\calls"');
                end if;
                if octet_length(heads[place]) > 4000 then
                    part := agui_internal.fold_shrink(heads[place], cardinality(large));
                    heads[place] := part.head;
                    large := large || part.parts;
                end if;
                place := parents[place];
            end loop;

            if touched = node
                and (step.action in ('start call', 'encrypt', 'show activity') or step.action = 'grow' and contents[node] is null)
            then
                heads[node] := agui_internal.fold_new_head(step, heads[node]);
                if step.action = 'start call' then
                    names[node] := step.name;
                elsif step.action = 'encrypt' then
                    encrypted[node] := step.content;
                end if;
            end if;
            if touched is not null and step.metadata is not null then
                if strpos(heads[touched], '"\\metadata"') = 0 then
                    heads[touched] := agui_internal.fold_member(heads[touched], 'metadata', '"\\metadata"');
                end if;
                changes := array_append(changes, (touched, 'merge', step.metadata, null, null)::agui_internal.fold_change);
            end if;

            case
                when touched is null then
                    null;

                when step.action = 'grow' then
                    changes := array_append(changes, (touched, 'grow', step.content, null, null)::agui_internal.fold_change);
                    if grows[touched] is null then
                        contents[touched] := coalesce(contents[touched], '""');
                        grows[touched] := true;
                    end if;

                when step.action = 'show activity' then
                    if step.replaces and touched = node then
                        if costs[node] then
                            -- Their fuel counts even if nothing of their result remains.
                            spent := spent + (
                                agui_internal.fold_activity(
                                    contents[node],
                                    agui_internal.fold_patches_of(changes, last_patch[node]),
                                    limits,
                                    limits.fold_fuel - spent
                                )
                            ).spent;
                        end if;
                        contents[node] := step.content;
                        types[node] := step.activity_type;
                        content_since[node] := cardinality(changes);
                        last_patch[node] := null;
                        costs[node] := null;
                    end if;

                when step.action = 'patch activity' then
                    waiting := waiting + octet_length(step.content);
                    nodes_cost := nodes_cost or step.costs;
                    if step.copies and array_position(copied_ids, step.id) is null then
                        copied_ids := array_append(copied_ids, step.id);
                        size := size + limits.document_bytes;
                    end if;
                    -- Apply it at the end with the others, unless something depends on whether it
                    -- succeeds.
                    if contents[node] is not null and types[node] is not null and shared[node] is null then
                        changes := array_append(
                            changes, (node, 'patch', step.content, step.activity_type, last_patch[node])::agui_internal.fold_change
                        );
                        last_patch[node] := cardinality(changes);
                        costs[node] := costs[node] or step.costs;
                    else
                        part := agui_internal.fold_activity(contents[node], array[step.content], limits, limits.fold_fuel - spent);
                        spent := spent + 4 * part.octets;
                        detaches := part.last_applied > 0 and shared[node];
                        if not detaches is true then
                            detaches := false;
                            spent := spent + part.spent;
                            if part.last_applied > 0 then
                                contents[node] := part.content;
                                types[node] := step.activity_type;
                                heads[node] := agui_internal.fold_new_head(step, heads[node]);
                            end if;
                        end if;
                    end if;

                else
                    null;
            end case;

            exit attempt when not detaches;
            spent := spent + 64 * message_count;
        end loop attempt;
    end loop;
    close steps;
    exit pieces when not goes_on;
    run_nos := run_nos[last :];
    after_seqs := through_seqs[last :];
    through_seqs := after_seqs;
    takes_input := takes_input[last :];
    last := 1;
    end loop pieces;

    result.state := coalesce(agui_internal.json_unguard(state), result.state);
    result.state_patches := state_patches;
    return result;
end
$function$;

comment on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[], timestamptz) is
    'Applies the events of the runs of a lineage, one segment after the other, to the result of '
    'the lineage before them. Segment i is the events of run run_nos[i] with after_seqs[i] < seq '
    '<= through_seqs[i]; if the run number is null, it is the events of the JSON array given. If '
    'takes_input says so, the first RUN_STARTED of the segment takes the input stored beside the '
    'events. Patches of the state are left to agui_internal.fold_patched. From stop_at on (null: '
    'no limit) it ends at the next piece of the last segment (agui_internal.fold_piece_end), and '
    'through_seq says where. At least one piece is folded.';

revoke execute on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[], timestamptz) from public;
