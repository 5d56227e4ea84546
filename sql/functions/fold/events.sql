-- The reducer in SQL. The one in Go is compaction/; neither needs the other. docs/reducer.md lists
-- what each type of event does.
--
--    agui.batch          fold_steps                 fold_segments                    fold_settle
--    ┌────────┐  events  ┌──────────────┐   steps   ┌────────────────────┐   nodes   ┌───────────┐
--    │ {…},{…}│ ───────► │ one event:   │ ────────► │ the conversation:  │ ────────► │ nodes to  │
--    │ {…},{…}│          │ is it valid, │  an       │ find, make, place, │  once a   │ messages  │
--    └────────┘          │ which stream │  eighth   │ open, change       │  fold     └─────┬─────┘
--                        └──────────────┘           └────────────────────┘                 │
--                          fold/steps                 ▲                                    │
--                                 agui_internal.fold ─┘◄───────────────────────────────────┘
--                                 (messages, state, interrupts, open lanes)
--
-- fold_events folds its segments in one piece or, with a time limit, the last one in several.
-- fold_segments executes each step of a piece in phases:
--   whole    a step for the whole conversation: a MESSAGES_SNAPSHOT, a limit, the end
--   load     the messages so far become nodes (fold/nodes)
--   find     the first node with the id of the step
--   make     a new message or call; or a message becomes an activity; or the node that was found is
--            touched
--   place    a new message goes to the end or, as the result of a call, behind the message of the
--            call
--   change   what changes is recorded; fold_settle does it, node by node
--
-- - The official client decides what is right, and both reducers write the same bytes: members in
--   the order of the client, a string that an event brings in its usual spelling, any other value
--   as it came, what patches changed as jsonb prints it.
-- - Between two steps: if several messages or calls have one id, fold_find returns the first one in
--   the conversation; the calls of a message are in the order of their nodes; the first `untouched`
--   messages are those of `result`, in their places.
-- - PL/pgSQL changes an element of an array variable in place, but copies an array that it passes
--   to a function which changes it. So all code that changes the arrays of nodes in a step is in
--   fold_segments.
--   No step copies a large text, and a loop over a query mentions only what it unnests.
-- - Strings are joined as guarded JSON text (core/json), never decoded and encoded. A message that
--   no event changes stays untouched text.
-- - Hot helpers have no SET clause, which costs as much as they do, and qualify every name. Those
--   in SQL are neither strict nor contain a query, so that they are inlined.
-- - After a change: go test ./test -run 'Golden|Fold|ReducersAgree|Bytes|Patch|Limits|Linear', then
--   make fuzz STREAMS=5000.

create or replace function agui_internal.fold_events(
    start agui_internal.fold,
    thread_key uuid,
    run_nos int[],
    after_seqs bigint[],
    through_seqs bigint[],
    given json default null,
    takes_input boolean[] default null,
    stop_at timestamptz default null,
    limits agui_internal.fold_limits default null
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    last  int := cardinality(run_nos);
    until constant bigint := through_seqs[last];
begin
    if limits is null then
        limits := agui_internal.limits_of_folds(agui_internal.rules());
    end if;
    loop
        if stop_at is not null then
            through_seqs[last] := agui_internal.fold_piece_end(thread_key, run_nos[last], after_seqs[last], until);
        end if;
        start := agui_internal.fold_segments(start, thread_key, run_nos, after_seqs, through_seqs, given, takes_input, limits);
        exit when through_seqs[last] >= until is not false;
        -- Before its RUN_STARTED has come, the result of a run cannot be continued from.
        takes_input[last] := takes_input[last] and agui_internal.awaits_start(thread_key, run_nos[last], through_seqs[last]);
        exit when takes_input[last] is not true and clock_timestamp() >= stop_at;
        run_nos := run_nos[last :];
        after_seqs := through_seqs[last :];
        through_seqs := after_seqs;
        takes_input := takes_input[last :];
        last := 1;
    end loop;
    return start;
end
$function$;

comment on function agui_internal.fold_events is
    'Applies the events of the runs of a lineage, one segment after the other, to the result of '
    'the lineage before them. Segment i is the events of run run_nos[i] with after_seqs[i] < seq '
    '<= through_seqs[i]; if the run number is null, it is the events of the JSON array given. If '
    'takes_input says so, the first RUN_STARTED of the segment takes the input stored beside the '
    'events. Patches of the state are left to agui_internal.fold_patched. From stop_at on (null: '
    'no limit) it ends at the next piece of the last segment (agui_internal.fold_piece_end), and '
    'through_seq says where. At least one piece is folded. limits: null reads them.';

create or replace function agui_internal.fold_segments(
    start agui_internal.fold,
    thread_key uuid,
    run_nos int[],
    after_seqs bigint[],
    through_seqs bigint[],
    given json,
    takes_input boolean[],
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
    result agui_internal.fold := start;
    state_patches text[] := start.state_patches;
    step   agui_internal.fold_step;
    part   record;

    -- What counts towards the limits.
    size        bigint := start.size;   -- at the last check, minus what the run had brought by then
    spent       bigint := start.spent;  -- fuel used by the run, except for its events
    costs       boolean := false;       -- some pending patches may use fuel
    state_costs boolean := false;       -- those of the state
    copied_ids  text[] := '{}';         -- changed by patches with copies since the last check

    -- Fetched one by one: a loop over a query prefetches up to 50 rows, and each may be a state as
    -- large as a batch.
    steps cursor for
        select * from agui_internal.fold_steps(thread_key, run_nos, after_seqs, through_seqs, given, takes_input, result.lanes, limits, result.message_ids);

    -- The conversation, while it is taken apart.
    nodes    agui_internal.fold_node[];  -- null: it is not
    bodies   text[];   -- before the changes; guarded for a call or a head
    contents text[];   -- of what is made here, and of activities, without pending patches
    changes  agui_internal.fold_change[];
    message_count int;
    first_node    int;
    last_node     int;
    untouched     int;
    is_ranked     boolean;
    era           int;

    -- The index (agui_internal.fold_find). Loaded messages are searched until indexing them pays,
    -- and the tool calls of messages that came whole have nodes only when a step needs them.
    seed         constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
    buckets      jsonb[];
    indexed      int;          -- nodes up to this one are indexed, except those that were loaded
    loaded_keys  jsonb;
    searches     int;
    listed       int;          -- the calls of messages up to this node have nodes
    has_unlisted boolean;      -- other calls exist without nodes
    lists_calls  boolean;      -- nodes are needed for them
    loaded_text  text;         -- the text of the loaded messages, to search it for the id of a call

    -- What the current step does.
    settles      boolean;     -- the nodes are put back together first
    node         int;         -- the first node with its id
    added        int;         -- the message that it adds
    insert_after int;         -- where, unless at the end
    touched      int;         -- the node that it changes
    made         agui_internal.fold_node;
begin
    open steps;
    <<steps>>
    loop
        fetch steps into step;
        exit when not found;

        -- Steps for the state and the run do not concern the conversation.

        case step.action
            when 'set state' then
                if state_costs then
                    -- Their fuel counts even if nothing of their result remains.
                    result.state_patches := state_patches;
                    result.spent := spent;
                    spent := (agui_internal.fold_patched(result, limits)).spent;
                    state_costs := false;
                end if;
                result.state := agui_internal.json_unguard(step.content);
                state_patches := '{}';
                continue steps;
            when 'patch state' then
                state_patches := array_append(state_patches, step.content);
                state_costs := state_costs or step.costs;
                if step.copies and array_position(copied_ids, '') is null then
                    copied_ids := array_append(copied_ids, '');
                    size := size + limits.document_bytes;
                end if;
                continue steps;
            when 'set interrupts' then
                result.interrupts := step.content;
                continue steps;
            when 'refuse lanes' then
                perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_lanes', limits.fold_lanes, limits.fold_lanes + 1);
            else
                settles := false;
        end case;

        <<attempt>>
        loop
            -- Steps for the conversation as a whole.

            <<whole>>
            declare
                ends     constant boolean := step.action in ('end run', 'end');
                is_large constant boolean := (ends or step.action = 'look') and size + step.brought > limits.fold_bytes;
            begin
                if not settles then
                    exit whole when not (ends or step.action in ('look', 'list messages'));
                    settles := nodes is not null
                        and (step.action in ('list messages', 'end') or step.action = 'end run' and costs or is_large);
                end if;
                if settles then
                    result.spent := spent;
                    result := agui_internal.fold_settle(
                        result, nodes => nodes, bodies => bodies, contents => contents, changes => changes,
                        first_node => first_node, untouched => untouched, limits => limits
                    );
                    spent := result.spent;
                    nodes := null;
                    costs := false;
                    if spent > limits.fold_fuel then
                        perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_fuel', limits.fold_fuel, spent);
                    end if;
                end if;

                if step.action in ('show activity', 'patch activity') then
                    -- A message that has several places changes only at the first one: it becomes a
                    -- separate message there.
                    result.message_nos[array_position(agui_internal.fold_keys(result.message_ids, result.bodies), step.id)] := null;
                    settles := false;
                    exit whole;
                end if;

                if step.action = 'list messages' then
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
                    continue steps;
                end if;

                if ends and state_costs or is_large then
                    result.state_patches := state_patches;
                    result.spent := spent;
                    result := agui_internal.fold_patched(result, limits);
                    spent := result.spent;
                    state_patches := '{}';
                    state_costs := false;
                end if;
                if is_large then
                    size := agui_internal.fold_size(result) - step.brought;
                    copied_ids := '{}';
                    if size + step.brought > limits.fold_bytes then
                        perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_bytes', limits.fold_bytes, size + step.brought);
                    end if;
                    spent := spent + size + step.brought;
                end if;
                if spent + step.brought > limits.fold_fuel then
                    perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_fuel', limits.fold_fuel, spent + step.brought);
                end if;
                continue steps when step.action = 'look';
                size := size + step.brought;
                if step.action = 'end run' then
                    spent := 0;
                    copied_ids := '{}';
                else
                    spent := spent + step.brought;
                    result.lanes := step.content;
                    result.through_seq := coalesce(step.seq, result.through_seq);
                end if;
                continue steps;
            end whole;

            -- Load: take the conversation apart.

            if nodes is null then
                <<load>>
                declare
                    has_places constant boolean := (select count(distinct number) < count(number) from unnest(result.message_nos) as number);
                begin
                    nodes := agui_internal.fold_loaded_nodes(result.roles, result.message_nos, has_places);
                    bodies := result.bodies;
                    contents := array[null];
                    changes := '{}';
                    message_count := cardinality(nodes);
                    first_node := case when message_count > 0 then 1 end;
                    last_node := nullif(message_count, 0);
                    -- A message that has several places gets a new number.
                    untouched := case when has_places then 0 else message_count end;
                    is_ranked := false;
                    era := 1;

                    buckets := '{}';
                    indexed := message_count;
                    -- Such an id may still be guarded, so it is ambiguous.
                    loaded_keys := case
                        when strpos(array_to_string(result.message_ids, ''), '\') > 0
                            then agui_internal.fold_loaded_keys(result.message_ids, result.bodies)
                    end;
                    searches := 0;
                    listed := 0;
                    has_unlisted := message_count > 0;
                    lists_calls := false;
                    loaded_text := null;
                end load;
            end if;

            -- Find the first node with the id.

            <<find>>
            declare
                key          constant text := case when step.is_call then 'call ' || step.id else step.id end;
                loaded_count constant int := cardinality(result.bodies);
                bucket       int;
            begin
                loop
                    -- Index the nodes that were added since.
                    while indexed < cardinality(nodes) loop
                        indexed := indexed + 1;
                        continue when nodes[indexed].key is null;
                        node := agui_internal.fold_find(nodes[indexed].key, buckets, result.message_ids, loaded_keys, seed);
                        -- Of several with one id the first in the conversation counts. That is the
                        -- newer one if it was inserted in between.
                        if node is null or is_ranked and nodes[indexed].rank < nodes[node].rank then
                            bucket := agui_internal.fold_bucket(nodes[indexed].key, seed);
                            buckets[bucket] := coalesce(buckets[bucket], '{}') || jsonb_build_object(nodes[indexed].key, indexed);
                        elsif nodes[indexed].parent > 0 then
                            nodes[coalesce(nodes[node].last_same, node)].next_same := indexed;
                            nodes[node].last_same := indexed;
                            if nodes[node].assistant is null then
                                nodes[node].assistant := nodes[indexed].assistant;
                            end if;
                        end if;
                    end loop;

                    node := agui_internal.fold_find(key, buckets, result.message_ids, loaded_keys, seed);
                    exit when not step.is_call or not has_unlisted or node is not null and not lists_calls;
                    -- A message that came whole may have the call, or get a call. Searching for the
                    -- id takes a fraction of creating nodes for all calls.
                    if not lists_calls and loaded_text is null then
                        loaded_text := array_to_string(result.bodies, '');
                        -- An escape can hide an id, but letters are rarely escaped.
                        lists_calls := strpos(loaded_text, '\u00') > 0
                            and loaded_text ~ '\\u00(2[dD]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])';
                    end if;
                    exit when not lists_calls
                        and searches <= 30
                        and strpos(loaded_text, substr(step.id, 2, length(step.id) - 2)) = 0
                        and step.id ~ '^"[A-Za-z0-9_-]*"$'
                        and (agui_internal.fold_find(step.parent_id, buckets, result.message_ids, loaded_keys, seed) <= loaded_count) is not true;

                    select * into nodes, bodies from agui_internal.fold_list_calls(nodes, bodies, listed);
                    listed := cardinality(nodes);
                    has_unlisted := false;
                    lists_calls := false;
                end loop;

                if node is null or node <= loaded_count then
                    searches := searches + 1;
                    if searches > 30 and loaded_keys is null then
                        loaded_keys := agui_internal.fold_loaded_keys(result.message_ids, result.bodies);
                    end if;
                end if;

                -- A message of another role may have the call too. Results and encrypted values
                -- belong to the first assistant that has it.
                if step.is_call and step.action in ('add result', 'encrypt') then
                    node := nodes[node].assistant;
                end if;
            end find;

            -- Make the new message or tool call, or determine the node to change.

            added := null;
            insert_after := null;
            touched := null;
            case
                when step.action = 'grow' and nodes[node].grows then
                    touched := node;

                when step.action = 'add result'
                    or node is null and step.action in ('start message', 'start call', 'add message', 'show activity')
                then
                    <<make>>
                    declare
                        id     text := case when step.action = 'add result' then step.parent_id else step.id end;
                        holder int;  -- of the call: its message
                    begin
                        if step.action = 'start call' then
                            holder := case
                                when step.parent_id <> '""' then agui_internal.fold_find(step.parent_id, buckets, result.message_ids, loaded_keys, seed)
                            end;
                            if holder is null then
                                id := coalesce(nullif(step.parent_id, '""'), id);
                            elsif nodes[holder].role is distinct from 'assistant' then
                                holder := null;
                            end if;
                        end if;

                        if holder is null then
                            part := agui_internal.fold_new_message(
                                step,
                                id,
                                case
                                    when step.action <> 'start call'
                                        or agui_internal.fold_find(id, buckets, result.message_ids, loaded_keys, seed) is null
                                        then step.owner
                                end
                            );
                            added := cardinality(nodes) + 1;
                            made := null;
                            made.key := id;
                            made.role := part.role;
                            made.activity_type := case when step.action = 'show activity' then step.activity_type end;
                            if part.head is not null then
                                made.is_head := true;
                                made.is_open := true;
                                changes := array_append(changes, (added, 'open', null, null, null)::agui_internal.fold_change);
                            end if;
                            nodes[added] := made;
                            bodies[added] := coalesce(part.head, part.body);
                            contents[added] := part.content;
                            holder := added;
                        end if;

                        if step.action = 'start call' then
                            touched := cardinality(nodes) + 1;
                            made := null;
                            made.key := 'call ' || step.id;
                            made.parent := holder;
                            made.name := step.name;
                            made.call_before := nodes[holder].last_call;
                            made.assistant := touched;
                            made.is_head := true;
                            nodes[touched] := made;
                            bodies[touched] := '{"id":' || step.id || ',"type":"function","function":{"name":' || step.name || ',"arguments":"\\content"}}';
                            contents[touched] := '""';
                            nodes[holder].last_call := touched;
                        elsif step.metadata is not null then
                            touched := added;
                        end if;

                        if step.action = 'add message' and (strpos(step.content, 'toolCalls') > 0 or strpos(step.content, '\u') > 0) then
                            -- Then nodes for all calls are created, in the order of the
                            -- conversation.
                            has_unlisted := true;
                            lists_calls := true;
                        elsif step.action = 'add result' and node is not null then
                            -- After the message that has the call and the results that follow it;
                            -- at the end if no message has the call.
                            holder := nodes[node].parent;
                            insert_after := case when nodes[holder].result_era = era then nodes[holder].last_result else holder end;
                            while nodes[nodes[insert_after].following].role = 'tool' loop
                                insert_after := nodes[insert_after].following;
                            end loop;
                            nodes[holder].last_result := insert_after;
                            nodes[holder].result_era := era;
                        end if;
                    end make;

                when step.action = 'show activity' and step.replaces and nodes[node].is_shared then
                    settles := true;

                when step.action = 'show activity' and step.replaces and nodes[node].role is distinct from 'activity' then
                    -- The message becomes an activity, without all that belonged to it.
                    <<replace>>
                    declare
                        gone   int := nodes[node].last_call;
                        first  int;
                        next   int;
                        bucket int;
                    begin
                        spent := spent + 64 * message_count;
                        era := era + 1;
                        while gone is not null loop
                            made := nodes[gone];
                            nodes[gone].key := null;
                            nodes[gone].parent := 0;
                            -- Others with its id take its place.
                            first := agui_internal.fold_find(made.key, buckets, result.message_ids, loaded_keys, seed);
                            next := made.next_same;
                            if first = gone then
                                while nodes[next].parent = 0 loop
                                    next := nodes[next].next_same;
                                end loop;
                                bucket := agui_internal.fold_bucket(made.key, seed);
                                buckets[bucket] := buckets[bucket] || jsonb_build_object(made.key, next);
                                if next is not null then
                                    nodes[next].last_same := nullif(made.last_same, next);
                                    nodes[next].assistant := made.assistant;
                                end if;
                                first := next;
                            end if;
                            if nodes[first].assistant = gone then
                                while nodes[next].parent = 0
                                    or next is not null and nodes[nodes[next].parent].role is distinct from 'assistant'
                                loop
                                    next := nodes[next].next_same;
                                end loop;
                                nodes[first].assistant := next;
                            end if;
                            gone := made.call_before;
                        end loop;
                        part := agui_internal.fold_new_message(step, step.id, step.owner);
                        made := nodes[node];
                        made.role := part.role;
                        made.number := null;
                        made.activity_type := step.activity_type;
                        made.grows := null;
                        made.last_call := null;
                        made.is_head := true;
                        made.is_open := true;
                        nodes[node] := made;
                        bodies[node] := part.head;
                        contents[node] := part.content;
                        changes := array_append(changes, (node, 'new message', null, null, null)::agui_internal.fold_change);
                        untouched := least(untouched, node - 1);
                        touched := case when step.metadata is not null then node end;
                        node := null;  -- the rest of the step is done
                    end replace;

                when node is null then
                    null;

                else
                    -- Each message is inspected once.
                    if nodes[node].name is null and (step.action = 'start call' or step.action = 'grow' and nodes[node].parent is not null) then
                        nodes[node].name := agui_internal.fold_call_name(bodies[node]);
                    elsif step.action = 'grow'
                        and step.content = '""'
                        and step.metadata is null
                        and nodes[node].parent is null
                        and nodes[node].has_text is null
                    then
                        nodes[node].has_text := coalesce(
                            case when nodes[node].is_head then contents[node] else (agui_internal.json_guard(bodies[node])::json -> 'content')::text end
                                ^@ '"',
                            false
                        );
                    end if;
                    touched := case when agui_internal.fold_has_effect(step, nodes[node]) then node end;
            end case;

            -- Place a new message: at the end, except for the result of a tool call.

            if added is not null then
                message_count := message_count + 1;
                if message_count > limits.fold_messages then
                    perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_messages', limits.fold_messages, message_count);
                end if;
                if insert_after <> last_node then
                    <<place>>
                    declare
                        following int := nodes[insert_after].following;
                        message   int := first_node;
                        room      bigint;
                    begin
                        if not is_ranked or nodes[following].rank - nodes[insert_after].rank < 2 then
                            for position in 1 .. message_count - 1 loop
                                nodes[message].rank := position * 1099511627776;  -- room for a million between two
                                message := nodes[message].following;
                            end loop;
                            is_ranked := true;
                        end if;
                        room := least((nodes[following].rank - nodes[insert_after].rank) / 2, 1048576);
                        nodes[added].rank := case
                            when nodes[added].role = 'tool' then nodes[insert_after].rank + room
                            else nodes[following].rank - room
                        end;
                        nodes[added].following := following;
                        nodes[insert_after].following := added;
                        untouched := least(untouched, insert_after);
                    end place;
                else
                    if last_node is null then
                        first_node := added;
                    else
                        nodes[last_node].following := added;
                        if is_ranked then
                            nodes[added].rank := nodes[last_node].rank + 1099511627776;
                        end if;
                    end if;
                    last_node := added;
                end if;
            end if;

            -- The first change of a node opens it, and the message of a tool call.

            if touched is not null and nodes[touched].is_open is null then
                <<open>>
                declare
                    place int := touched;
                begin
                    while place is not null loop
                        if nodes[place].is_open is null then
                            made := nodes[place];
                            made.is_open := true;
                            made.number := null;
                            nodes[place] := made;
                            untouched := least(untouched, place - 1);
                            changes := array_append(changes, (place, 'open', null, null, null)::agui_internal.fold_change);
                        end if;
                        if place <> touched then
                            changes := array_append(changes, (place, 'calls', null, null, null)::agui_internal.fold_change);
                        end if;
                        place := nodes[place].parent;
                    end loop;
                end open;
            end if;

            -- Change it. fold_settle applies the changes of a node in this order.

            if touched = node then
                if step.action = 'grow' then
                    nodes[node].grows := true;
                    changes := array_append(changes, (node, 'grow', step.content, null, null)::agui_internal.fold_change);
                elsif step.action = 'start call' and nodes[node].name <> step.name then
                    nodes[node].name := step.name;
                    changes := array_append(changes, (node, 'rename', step.name, null, null)::agui_internal.fold_change);
                elsif step.action = 'encrypt' then
                    changes := array_append(changes, (node, 'encrypt', step.content, null, null)::agui_internal.fold_change);
                elsif step.action = 'show activity' and step.replaces then
                    if nodes[node].patches_cost then
                        -- Their fuel counts even if nothing of their result remains.
                        spent := spent + (
                            agui_internal.fold_activity(
                                contents[node],
                                agui_internal.fold_patches_of(changes, nodes[node].last_patch),
                                limits,
                                limits.fold_fuel - spent
                            )
                        ).spent;
                    end if;
                    made := nodes[node];
                    made.activity_type := step.activity_type;
                    made.last_patch := null;
                    made.patches_cost := null;
                    nodes[node] := made;
                    contents[node] := step.content;
                    changes := array_append(changes, (node, 'new content', step.owner, step.activity_type, null)::agui_internal.fold_change);
                end if;
            end if;
            if touched is not null and step.metadata is not null then
                changes := array_append(changes, (touched, 'merge', step.metadata, null, null)::agui_internal.fold_change);
            end if;
            if touched is not null and step.action = 'patch activity' then
                costs := costs or step.costs;
                if step.copies and array_position(copied_ids, step.id) is null then
                    copied_ids := array_append(copied_ids, step.id);
                    size := size + limits.document_bytes;
                end if;
                if nodes[node].activity_type is null and contents[node] is null then
                    part := agui_internal.fold_open(agui_internal.json_guard(bodies[node]), false);
                    nodes[node].activity_type := part.activity_type;
                    contents[node] := part.content;
                end if;
                -- Apply it at the end with the others, unless something depends on whether it
                -- succeeds.
                if contents[node] is not null and nodes[node].activity_type is not null and nodes[node].is_shared is null then
                    changes := array_append(
                        changes, (node, 'patch', step.content, step.activity_type, nodes[node].last_patch)::agui_internal.fold_change
                    );
                    nodes[node].last_patch := cardinality(changes);
                    nodes[node].patches_cost := nodes[node].patches_cost or step.costs;
                else
                    part := agui_internal.fold_activity(contents[node], array[step.content], limits, limits.fold_fuel - spent);
                    spent := spent + 4 * part.octets;
                    if part.last_applied > 0 and nodes[node].is_shared then
                        settles := true;
                    else
                        spent := spent + part.spent;
                        if part.last_applied > 0 then
                            contents[node] := part.content;
                            nodes[node].activity_type := step.activity_type;
                            changes := array_append(changes, (node, 'patched', null, step.activity_type, null)::agui_internal.fold_change);
                        end if;
                    end if;
                end if;
            end if;

            exit attempt when not settles;
            spent := spent + 64 * message_count;
        end loop attempt;
    end loop steps;
    close steps;

    result.state_patches := state_patches;
    result.size := size;
    result.spent := spent;
    return result;
end
$function$;

comment on function agui_internal.fold_segments is
    'Applies the events of some segments to the result of the lineage before them, as '
    'agui_internal.fold_events does with each piece.';

create or replace function agui_internal.fold_patched(fold agui_internal.fold, limits agui_internal.fold_limits default null)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    patched   record;
    state     text;
    is_unread boolean;
begin
    if cardinality(fold.state_patches) > 0 then
        limits := coalesce(limits, agui_internal.limits_of_folds(agui_internal.rules()));
        state := agui_internal.json_guard(fold.state);
        is_unread := agui_internal.json_has_too_many_elements(state, limits.document_bytes);
        patched := agui_internal.json_patch_apply(
            case when is_unread then '0' else agui_internal.json_guard_numbers(state)::jsonb end,
            agui_internal.json_patches(fold.state_patches, limits.document_bytes),
            limits,
            limits.fold_fuel - fold.spent,
            false,
            is_unread
        );
        if patched.last_applied > 0 then
            fold.state := agui_internal.json_from_jsonb(patched.document);
        end if;
        fold.state_patches := '{}';
        fold.spent := fold.spent + patched.spent;
    end if;
    return fold;
end
$function$;

comment on function agui_internal.fold_patched is
    'Applies the patches of a fold to its state. A patch with a failing operation has no effect. '
    'limits: null reads them.';

create or replace function agui_internal.refuse_fold(
    thread_key uuid,
    run_nos int[],
    seq bigint,
    setting text,
    allowed bigint,
    reached bigint
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    run_id text;
begin
    select run.run_id into run_id
    from agui.run as run
    where run.thread_key = refuse_fold.thread_key
        and run.run_no = any (run_nos)
        and run.first_seq <= coalesce(seq, 9223372036854775807)
    order by run.run_no desc
    limit 1;
    raise exception using
        errcode = 'UI023',
        message = format('%s cannot be folded: it exceeds the limit %s',
            coalesce(format('the lineage of run "%s"', run_id), 'the stream of events'), setting),
        detail = format('%s is %s, and it takes %s%s.', setting, allowed, reached, coalesce(' at seq ' || seq, '')),
        hint = 'The events can still be read (agui.events). Raise the limit with agui.set_setting, then let compaction retry with agui.retry.';
end
$function$;

comment on function agui_internal.refuse_fold is
    'Raises UI023: the event at a seq makes the fold of some runs exceed the limit of a setting.';

create or replace function agui_internal.awaits_start(thread_key uuid, run_no int, through_seq bigint)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from agui_internal.input_places(thread_key, array[run_no], array[through_seq]) as place
        where not place.is_start
    );
end
$$;

comment on function agui_internal.awaits_start is
    'Whether a run has an input beside its events and, up to a seq, no RUN_STARTED at which it '
    'would count. A fold of its events cannot be continued from as long as more events may come.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_has_effect(step agui_internal.fold_step, node agui_internal.fold_node)
returns boolean
language sql
immutable
parallel safe
return case
    when node.role = 'activity'
        then step.action = 'patch activity' or step.action = 'show activity' and (step.replaces or step.metadata is not null)
    when step.action = 'start message' then step.metadata is not null
    when step.action = 'start call' then node.name <> '' and (step.metadata is not null or node.name <> step.name)
    when step.action = 'grow' and step.content = '""' and step.metadata is null then node.parent is null and not node.has_text
    when step.action = 'grow' then node.parent is null or node.name <> ''
    else step.action in ('merge', 'encrypt')
end;

comment on function agui_internal.fold_has_effect is
    'Whether a step changes an existing message or tool call, whose name or has_text is known if '
    'the step depends on it.';

create or replace function agui_internal.fold_patches_of(changes agui_internal.fold_change[], last_patch int)
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    patches text[] := '{}';
    place   int := last_patch;
begin
    while place is not null loop
        patches := array_append(patches, changes[place].text);
        place := changes[place].previous;
    end loop;
    return array(select patch.text from unnest(patches) with ordinality as patch (text, position) order by patch.position desc);
end
$function$;

comment on function agui_internal.fold_patches_of is
    'The pending patches of an activity among the changes of agui_internal.fold_segments, in order, '
    'given the position of the last of them.';
