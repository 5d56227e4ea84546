-- The reducer in SQL: goes on from what a lineage meant so far, over the events that follow. agui_internal.fold_steps says what they do, in steps;
-- each step is done here: load, find, make, place, change. agui_internal.fold_settle writes the result.
--
-- The conversation is taken apart into nodes, messages and tool calls, numbered as they come: those that were loaded first, in their order. PL/pgSQL
-- changes a field of an element of an array in place, and copies an array that it hands to a function that changes it. So all that changes
-- nodes is in this function, and those that it calls only read them.
--
-- What always holds between two steps: of several messages or calls with one id, agui_internal.fold_find gives the first one in the conversation; the tool
-- calls of a message are in the order of their nodes; the first `untouched` messages are those of `result`, in their places.
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
    result agui_internal.fold := start;
    step   agui_internal.fold_step;
    state  text;               -- what a step set it to
    state_patches text[] := start.state_patches;

    -- The limits, and what counts towards them.
    limits constant agui_internal.fold_limits := agui_internal.limits_of_folds();
    size          bigint := start.size;   -- at the last look, less what had been brought by then
    spent         bigint := start.spent;  -- fuel that the run has used, but for what its events brought
    brought_before bigint := 0;           -- by the runs before it
    message_count int;
    state_costs   boolean := false;       -- among the patches that wait are some that may use fuel
    nodes_cost    boolean := false;
    copied_ids    text[] := '{}';         -- what patches with copies have changed since the last look

    -- Fetched one by one: a loop over a query fetches up to 50 rows in advance, and each may be a state as large as a batch.
    steps cursor for
        select * from agui_internal.fold_steps(thread_key, run_nos, after_seqs, through_seqs, given, takes_input, start.lanes, limits);

    -- The conversation, while it is taken apart.
    is_loaded    boolean := false;
    nodes        agui_internal.fold_node[];
    loaded_count int;
    node_count   int;
    first_node   int;
    last_node    int;
    following    int[];        -- of a message the node of the next one
    untouched    int;
    changes      agui_internal.fold_change[];

    -- The index (agui_internal.fold_find). Loaded messages are searched by their ids as they are, until it pays to index them too.
    buckets      jsonb[];
    indexed      int;          -- nodes up to this one are in it, but for those that are loaded
    loaded_ids   text[];
    loaded_keys  jsonb;
    misses       int;

    -- The tool calls of messages that came whole have nodes only once a step needs them.
    listed       int;          -- those of messages up to this node have
    has_unlisted boolean;      -- whether there are others
    lists_calls  boolean;      -- whether they are needed
    loaded_text  text;         -- the loaded messages, to look for the id of a call in
    searches     int;

    -- What the step at hand does.
    key          text;
    node         int;          -- the first one that has its id
    parent       int;
    added        int;          -- the message that it adds
    touched      int;          -- the node that it changes
    insert_after int;
    id           text;
    made         agui_internal.fold_node;
    opened       agui_internal.fold_node;
    detaches     boolean;
    place        int;
    part         record;
    result_owner int;          -- the message whose tool results were added last, and the last one of them
    result_last  int;
begin
    open steps;
    loop
        fetch steps into step;
        exit when not found;
        case step.action
            when 'set state' then
                if state_costs then
                    -- What they use counts, even if nothing is left of what they do.
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
                if step.copies and array_position(copied_ids, '') is null then
                    copied_ids := array_append(copied_ids, '');
                    size := size + limits.document_bytes;
                end if;
                continue;
            when 'set interrupts' then
                result.interrupts := step.content;
                continue;
            when 'list messages' then
                if is_loaded then
                    result.spent := spent;
                    result := agui_internal.fold_settle(result, nodes, first_node, following, untouched, changes, limits);
                    spent := result.spent;
                    is_loaded := false;
                    nodes_cost := false;
                end if;
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
                continue;
            when 'look', 'end run', 'end' then
                if is_loaded and (step.action = 'end' or step.action = 'end run' and nodes_cost or size + step.brought > limits.fold_bytes) then
                    result.spent := spent;
                    result := agui_internal.fold_settle(result, nodes, first_node, following, untouched, changes, limits);
                    spent := result.spent;
                    is_loaded := false;
                    nodes_cost := false;
                end if;
                if step.action <> 'look' and state_costs or size + step.brought > limits.fold_bytes then
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
                        perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_bytes', limits.fold_bytes, size + step.brought);
                    end if;
                    spent := spent + size + step.brought;
                    copied_ids := '{}';
                end if;
                if spent + step.brought - brought_before > limits.fold_fuel then
                    perform agui_internal.refuse_fold(
                        thread_key, run_nos, step.seq, 'fold_fuel', limits.fold_fuel, spent + step.brought - brought_before
                    );
                end if;
                if step.action = 'end run' then
                    spent := 0;
                    brought_before := step.brought;
                elsif step.action = 'end' then
                    result.lanes := step.content;
                    result.through_seq := coalesce(step.seq, result.through_seq);
                    result.size := size + step.brought;
                    result.spent := spent + step.brought - brought_before;
                end if;
                continue;
            when 'refuse lanes' then
                perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_lanes', limits.fold_lanes, limits.fold_lanes + 1);
            else
                null;
        end case;

        <<attempt>>
        loop
            -- Load.

            if not is_loaded then
                nodes := agui_internal.fold_load(result);
                loaded_count := cardinality(nodes);
                message_count := loaded_count;
                node_count := loaded_count;
                first_node := case when loaded_count > 0 then 1 end;
                last_node := nullif(loaded_count, 0);
                following := array(select generate_series(2, loaded_count));
                -- A message that stands at several places gets its number anew.
                untouched := case when exists (select from unnest(nodes) as shared where shared.is_shared) then 0 else loaded_count end;
                changes := '{}';
                buckets := '{}';
                indexed := loaded_count;
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
                searches := 0;
                result_owner := null;
                is_loaded := true;
            end if;

            -- Find the first node that has the id.

            key := case when step.is_call then 'call ' || step.id else step.id end;
            loop
                while indexed < node_count loop
                    indexed := indexed + 1;
                    continue when nodes[indexed].key is null;
                    node := agui_internal.fold_find(buckets, loaded_ids, loaded_keys, nodes[indexed].key);
                    -- Of several with one id the first in the conversation counts, which is the newer one where it was put in between.
                    place := following[indexed];
                    while place <> node loop
                        place := following[place];
                    end loop;
                    if node is null or place = node then
                        place := agui_internal.fold_bucket(nodes[indexed].key);
                        buckets[place] := coalesce(buckets[place], '{}') || jsonb_build_object(nodes[indexed].key, indexed);
                    end if;
                end loop;

                node := agui_internal.fold_find(buckets, loaded_ids, loaded_keys, key);
                exit when not step.is_call or not has_unlisted or node is not null and not lists_calls;

                -- Perhaps a message that came whole has the call, or gets another one. To look for the id takes a part of listing all.
                if not lists_calls then
                    if loaded_text is null then
                        loaded_text := array_to_string(result.bodies, '');
                        -- An escape can hide an id, but letters are rarely written as escapes.
                        lists_calls := strpos(loaded_text, '\u00') > 0
                            and loaded_text ~ '\\u00(2[dD]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])';
                    end if;
                    searches := searches + 1;
                    exit when not lists_calls
                        and searches <= 40
                        and strpos(loaded_text, substr(step.id, 2, length(step.id) - 2)) = 0
                        and step.id ~ '^"[A-Za-z0-9_-]*"$'
                        and (agui_internal.fold_find(buckets, loaded_ids, loaded_keys, step.parent_id) <= loaded_count) is not true;
                end if;

                for made in
                    select * from agui_internal.fold_calls_in(nodes, listed)
                loop
                    node_count := node_count + 1;
                    nodes[node_count] := made;
                    nodes[made.parent].has_calls := true;
                end loop;
                listed := node_count;
                has_unlisted := false;
                lists_calls := false;
            end loop;
            if node is null then
                misses := misses + 1;
                if misses > 30 and loaded_keys is null then
                    loaded_keys := agui_internal.fold_loaded_keys(loaded_ids, result.bodies);
                end if;
            end if;

            if node is not null
                and step.is_call
                and step.action in ('add result', 'encrypt')
                and nodes[nodes[node].parent].role is distinct from 'assistant'
            then
                node := agui_internal.fold_assistant_call(key, nodes, first_node, following);
            end if;

            -- Make what is new, or say which node changes.

            touched := null;
            added := null;
            insert_after := null;
            detaches := false;
            case
                when step.action = 'grow' and nodes[node].grows then
                    touched := node;

                when step.action = 'add result' then
                    made := agui_internal.fold_new_message(step, step.parent_id, step.owner);
                    node_count := node_count + 1;
                    nodes[node_count] := made;
                    added := node_count;
                    touched := case when step.metadata is not null then added end;
                    -- Behind the message that has the call and the results that follow it; at the end when none has the call.
                    if node is not null then
                        parent := nodes[node].parent;
                        insert_after := case when result_owner = parent then result_last else parent end;
                        while nodes[following[insert_after]].role = 'tool' loop
                            insert_after := following[insert_after];
                        end loop;
                        result_owner := case when made.role = 'tool' then parent end;
                        result_last := added;
                    end if;

                when step.action = 'start call' and node is null then
                    parent := case
                        when step.parent_id <> '""' then agui_internal.fold_find(buckets, loaded_ids, loaded_keys, step.parent_id)
                    end;
                    if parent is null or nodes[parent].role is distinct from 'assistant' then
                        id := case when parent is null then coalesce(nullif(step.parent_id, '""'), step.id) else step.id end;
                        made := agui_internal.fold_new_message(
                            step, id, case when agui_internal.fold_find(buckets, loaded_ids, loaded_keys, id) is null then step.owner end
                        );
                        node_count := node_count + 1;
                        nodes[node_count] := made;
                        added := node_count;
                        parent := added;
                    end if;
                    made := null;
                    made.key := key;
                    made.parent := parent;
                    made.head := '{"id":' || step.id || ',"type":"function","function":{"name":' || step.name || ',"arguments":"\\content"}}';
                    made.content := '""';
                    node_count := node_count + 1;
                    nodes[node_count] := made;
                    nodes[parent].has_calls := true;
                    touched := node_count;

                when step.action in ('start message', 'add message', 'show activity') and node is null then
                    made := agui_internal.fold_new_message(step, step.id, step.owner);
                    node_count := node_count + 1;
                    nodes[node_count] := made;
                    added := node_count;
                    touched := case when step.metadata is not null then added end;
                    if step.action = 'add message' and (strpos(step.content, 'toolCalls') > 0 or strpos(step.content, '\u') > 0) then
                        -- All calls are listed then, in the order of the conversation.
                        has_unlisted := true;
                        lists_calls := true;
                    end if;

                when step.action = 'show activity' and step.replaces and nodes[node].is_shared then
                    detaches := true;

                when step.action = 'show activity' and step.replaces and nodes[node].role is distinct from 'activity' then
                    -- The message gives way, with all that it had.
                    spent := spent + 64 * message_count;
                    for gone in node + 1 .. case when nodes[node].has_calls then node_count else node end loop
                        continue when nodes[gone].parent is distinct from node;
                        id := nodes[gone].key;
                        nodes[gone].parent := 0;
                        nodes[gone].key := null;
                        if agui_internal.fold_find(buckets, loaded_ids, loaded_keys, id) = gone then
                            place := agui_internal.fold_bucket(id);
                            buckets[place] := buckets[place] || jsonb_build_object(id, agui_internal.fold_first(nodes, id));
                        end if;
                    end loop;
                    made := agui_internal.fold_new_message(step, step.id, step.owner);
                    made.key := nodes[node].key;
                    made.content_since := cardinality(changes);
                    made.metadata_since := cardinality(changes);
                    nodes[node] := made;
                    untouched := least(untouched, node - 1);
                    result_owner := null;
                    touched := case when step.metadata is not null then node end;

                when node is not null and agui_internal.fold_takes(step, nodes[node]) then
                    touched := node;

                else
                    null;
            end case;

            -- Place a new message: at the end, but for the result of a tool call.

            if added is not null then
                message_count := message_count + 1;
                if message_count > limits.fold_messages then
                    perform agui_internal.refuse_fold(thread_key, run_nos, step.seq, 'fold_messages', limits.fold_messages, message_count);
                end if;
            end if;
            if added is not null and insert_after <> last_node then
                following[added] := following[insert_after];
                following[insert_after] := added;
                untouched := least(untouched, insert_after);
            elsif added is not null then
                if last_node is null then
                    first_node := added;
                else
                    following[last_node] := added;
                end if;
                last_node := added;
            end if;

            -- Change the node. What was in one piece so far, and the message of a tool call too, is taken apart first.

            place := touched;
            while place is not null loop
                opened := nodes[place];
                if opened.head is null then
                    part := agui_internal.fold_open(
                        case when opened.parent is null then agui_internal.json_guard(opened.body) else opened.body end, opened.parent is not null
                    );
                    if part.metadata is not null then
                        changes := array_append(changes, (place, 'merge', part.metadata, null, null)::agui_internal.fold_change);
                    end if;
                    opened.number := null;
                    opened.body := null;
                    opened.head := part.head;
                    opened.content := part.content;
                    opened.activity_type := part.activity_type;
                    nodes[place] := opened;
                    untouched := least(untouched, place - 1);
                end if;
                if place <> touched and strpos(opened.head, '"\\calls"') = 0 then
                    nodes[place].head := agui_internal.fold_member(opened.head, 'toolCalls', '"\\calls"');
                end if;
                place := opened.parent;
            end loop;

            if touched = node
                and (step.action in ('start call', 'encrypt', 'show activity') or step.action = 'grow' and nodes[node].content is null)
            then
                nodes[node].head := agui_internal.fold_new_head(step, nodes[node].head);
            end if;
            if touched is not null and step.metadata is not null then
                if strpos(nodes[touched].head, '"\\metadata"') = 0 then
                    nodes[touched].head := agui_internal.fold_member(nodes[touched].head, 'metadata', '"\\metadata"');
                end if;
                changes := array_append(changes, (touched, 'merge', step.metadata, null, null)::agui_internal.fold_change);
            end if;

            case
                when touched is null then
                    null;

                when step.action = 'grow' then
                    changes := array_append(changes, (touched, 'grow', step.content, null, null)::agui_internal.fold_change);
                    if nodes[touched].grows is null then
                        nodes[touched].content := coalesce(nodes[touched].content, '""');
                        nodes[touched].grows := true;
                    end if;

                when step.action = 'show activity' then
                    if step.replaces and touched = node then
                        if nodes[node].costs then
                            -- What they use counts, even if nothing is left of what they do.
                            spent := spent + (
                                agui_internal.fold_activity(
                                    nodes[node].content,
                                    agui_internal.fold_patches_of(changes, nodes[node].last_patch),
                                    limits,
                                    limits.fold_fuel - spent
                                )
                            ).spent;
                        end if;
                        nodes[node].content := step.content;
                        nodes[node].activity_type := step.activity_type;
                        nodes[node].content_since := cardinality(changes);
                        nodes[node].last_patch := null;
                        nodes[node].costs := null;
                    end if;

                when step.action = 'patch activity' then
                    nodes_cost := nodes_cost or step.costs;
                    if step.copies and array_position(copied_ids, step.id) is null then
                        copied_ids := array_append(copied_ids, step.id);
                        size := size + limits.document_bytes;
                    end if;
                    -- It waits for the end, with the others, unless something else depends on whether it succeeds.
                    if nodes[node].content is not null and nodes[node].activity_type is not null and nodes[node].is_shared is null then
                        changes := array_append(
                            changes, (node, 'patch', step.content, step.activity_type, nodes[node].last_patch)::agui_internal.fold_change
                        );
                        nodes[node].last_patch := cardinality(changes);
                        nodes[node].costs := nodes[node].costs or step.costs;
                    else
                        part := agui_internal.fold_activity(nodes[node].content, array[step.content], limits, limits.fold_fuel - spent);
                        spent := spent + 4 * part.octets;
                        detaches := part.last_applied > 0 and nodes[node].is_shared is true;
                        if not detaches then
                            spent := spent + part.spent;
                            if part.last_applied > 0 then
                                nodes[node].content := part.content;
                                nodes[node].activity_type := step.activity_type;
                                nodes[node].head := agui_internal.fold_new_head(step, nodes[node].head);
                            end if;
                        end if;
                    end if;

                else
                    null;
            end case;

            -- Where a message that stands at several places changes at the first one alone, that one becomes a message of its own; then once more.

            exit attempt when not detaches;
            spent := spent + 64 * message_count;
            result.spent := spent;
            result := agui_internal.fold_settle(result, nodes, first_node, following, untouched, changes, limits);
            spent := result.spent;
            result.message_nos[array_position(agui_internal.fold_keys(result.message_ids, result.bodies), step.id)] := null;
            is_loaded := false;
        end loop attempt;
    end loop;
    close steps;

    result.state := coalesce(agui_internal.json_unguard(state), result.state);
    result.state_patches := state_patches;
    return result;
end
$function$;

comment on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[]) is
    'What a lineage means, from what it meant before: applies the events of its runs, one segment after the other. Segment i is the events '
    'of run run_nos[i] with after_seqs[i] < seq <= through_seqs[i]; with a run number of null, those of the JSON array given. Where takes_input '
    'says so, its first RUN_STARTED takes the input that is stored beside the events. Patches of the state are left to agui_internal.fold_patched.';

revoke execute on function agui_internal.fold_events(agui_internal.fold, uuid, int[], bigint[], bigint[], json, boolean[]) from public;
