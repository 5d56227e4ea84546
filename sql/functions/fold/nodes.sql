-- Messages and tool calls while they are folded: each is a node, counted from 1. Its small fields
-- are one agui_internal.fold_node in one array; its texts are in arrays beside:
--
--                1                2                3                4
--             ┌────────────────┬────────────────┬────────────────┬────────────────┐
--    nodes    │ loaded message │ loaded message │ new message    │ call of node 3 │
--             │ following 2    │ following 3    │ last_call 4    │ parent 3       │
--             ├────────────────┼────────────────┼────────────────┼────────────────┤
--    bodies   │ {"id":"u1",…}  │ {"id":"a1",…}  │ {"id":"a2",…,  │ {"id":"c1",…,  │  the text before
--             │                │                │ "toolCalls":   │ "arguments":   │  the changes;
--             │                │                │ "\\calls"}     │ "\\content"}}  │  a head, if new
--             ├────────────────┼────────────────┼────────────────┼────────────────┤
--    contents │                │                │                │ ""             │  what its string
--             └────────────────┴────────────────┴────────────────┴────────────────┘  began with
--
--    changes    (3, open)  (4, open)  (3, calls)  (4, grow, "{\"q\":")  (4, grow, "1}")  …
--                                                               in the order of the steps
--
-- - A step only records what changes. fold_settle takes each changed node apart once (fold_open),
--   changes its head (fold_new_head), and puts it back together (fold_close).
-- - A text is no field of the composite: each assignment to a field copies the whole element.
-- - Marks in a head show where the parts belong: "\\content", "\\metadata", "\\calls". Guarded
--   text never contains such strings otherwise.
-- - The order of the conversation is the chain `following`.
-- - fold_find finds a node by its key: the id of a message, or 'call ' and the id of a call. Of
--   calls with one id the first alone is in the index, and the others follow it (next_same).
-- - A message at several places is one node with others that point to it (same_as). It changes at
--   its first place only. So before an activity changes there, the nodes are settled, and the place
--   becomes a message of its own.

create or replace function agui_internal.fold_call_name(call text)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    function constant json := call::json -> 'function';
begin
    return case
        when json_typeof(function) = 'object' then coalesce(agui_internal.json_string_token((function -> 'name')::text), 'null')
        else ''
    end;
end
$function$;

comment on function agui_internal.fold_call_name is
    'The name of a tool call (guarded JSON text, or the head of one) as JSON; empty if it has no '
    'function.';

create or replace function agui_internal.fold_calls_of(message text)
returns table (id text, body text)
language plpgsql
immutable
parallel safe
rows 5
set search_path = pg_catalog, pg_temp
as $function$
begin
    return query
    select
        case when call.id ^@ '"' then call.id end,
        call.body
    from (
        select
            agui_internal.json_string_token((element.value -> 'id')::text) as id,
            element.value::text as body,
            element.position
        from (select message::json -> 'toolCalls' as list offset 0) as calls
        cross join lateral json_array_elements(case when calls.list::text ^@ '[' then calls.list else '[]' end) with ordinality as element (value, position)
    ) as call
    order by call.position;
end
$function$;

comment on function agui_internal.fold_calls_of is
    'The tool calls of a message (guarded JSON text) in order; an id that is not a string is null.';

create or replace function agui_internal.fold_list_calls(
    inout nodes agui_internal.fold_node[],
    inout bodies text[],
    in listed int
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    part record;
    made agui_internal.fold_node;
begin
    for holder in listed + 1 .. cardinality(nodes) loop
        continue when nodes[holder].parent is not null
            or nodes[holder].same_as is not null
            or nodes[holder].is_head
            or strpos(bodies[holder], 'toolCalls') = 0 and strpos(bodies[holder], '\u') = 0;
        for part in
            select * from agui_internal.fold_calls_of(agui_internal.json_guard(bodies[holder]))
        loop
            made := null;
            made.key := 'call ' || part.id;
            made.parent := holder;
            made.assistant := case when nodes[holder].role = 'assistant' then cardinality(nodes) + 1 end;
            made.call_before := nodes[holder].last_call;
            nodes := array_append(nodes, made);
            bodies := array_append(bodies, part.body);
            nodes[holder].last_call := cardinality(nodes);
        end loop;
    end loop;
end
$function$;

comment on function agui_internal.fold_list_calls is
    'Adds nodes for the tool calls of messages that came whole, behind the first `listed` nodes.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_find(key text, buckets jsonb[], loaded_ids text[], loaded_keys jsonb, seed bigint)
returns int
language sql
immutable
parallel safe
return coalesce(
    (buckets[agui_internal.fold_bucket(key, seed)] ->> key)::int,
    case
        when loaded_keys is not null then (loaded_keys ->> key)::int
        when key ^@ '"' then array_position(loaded_ids, agui_internal.json_string_text(key))
    end
);

comment on function agui_internal.fold_find is
    'The first message or tool call with a key, as its number in agui_internal.fold_segments, whose '
    'index is buckets, the ids of the loaded messages (loaded_ids or, once they are indexed, '
    'loaded_keys) and seed; null if there is none.';

-- 4,096 buckets: 100,000 keys make 25 in each, which are searched as fast as one. The hash has an
-- unpredictable seed. Otherwise ids could be chosen that all fall into one bucket.
create or replace function agui_internal.fold_bucket(key text, seed bigint)
returns int
language sql
immutable
parallel safe
return (hashtextextended(key, seed) & 4095)::int + 1;

comment on function agui_internal.fold_bucket is
    'The bucket of a key in the index of agui_internal.fold_segments.';

create or replace function agui_internal.fold_loaded_keys(message_ids text[], bodies text[])
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        -- Of several messages with one id the last in this order is kept: the first in the
        -- conversation.
        select coalesce(jsonb_object_agg(message.key, message.position order by message.position desc), '{}')
        from unnest(agui_internal.fold_keys(message_ids, bodies)) with ordinality as message (key, position)
        where message.key is not null
    );
end
$function$;

comment on function agui_internal.fold_loaded_keys is
    'The keys of the messages of an agui_internal.fold with the place of the first message that '
    'has each, for agui_internal.fold_find.';

create or replace function agui_internal.fold_loaded_nodes(roles text[], message_nos int[], has_places boolean)
returns agui_internal.fold_node[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    nodes  agui_internal.fold_node[];
    second record;
begin
    nodes := array(
        select (
            null, message.role, null, message.number, null, null,
            null, null, null, null, null, null, null, null,
            nullif(message.position, cardinality(roles)) + 1, null, null, null, null, null,
            null, null, null
        )::agui_internal.fold_node
        from unnest(roles, message_nos) with ordinality as message (role, number, position)
    );
    if has_places then
        for second in
            select place.node, place.first_node
            from (
                select message.position as node, min(message.position) over (partition by message.number) as first_node
                from unnest(message_nos) with ordinality as message (number, position)
                where message.number is not null
            ) as place
            where place.node > place.first_node
        loop
            nodes[second.node].same_as := second.first_node;
            nodes[second.first_node].is_shared := true;
        end loop;
    end if;
    return nodes;
end
$function$;

comment on function agui_internal.fold_loaded_nodes is
    'The nodes of the messages of an agui_internal.fold, given their roles and '
    'numbers. has_places: some have several places, which have one number.';

create or replace function agui_internal.fold_new_head(head text, kind text, value text, name text, is_call boolean)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    function constant text := case when is_call and kind in ('grow', 'rename') then head::json -> 'function' end;
begin
    case
        when kind = 'calls' then
            if strpos(head, '"\\calls"') = 0 then
                head := agui_internal.fold_member(head, 'toolCalls', '"\\calls"');
            end if;
        when kind = 'merge' then
            if strpos(head, '"\\metadata"') = 0 then
                head := agui_internal.fold_member(head, 'metadata', '"\\metadata"');
            end if;
        when kind = 'rename' then
            head := agui_internal.fold_member(head, 'function', agui_internal.json_member_set(function, 'name', value));
        when kind = 'encrypt' then
            head := agui_internal.fold_member(head, 'encryptedValue', value);
        when kind = 'grow' and is_call then
            head := agui_internal.fold_member(head, 'function', agui_internal.fold_member(function, 'arguments', '"\\content"'));
        when kind in ('grow', 'patched') then
            head := agui_internal.fold_member(head, 'content', '"\\content"');
            if kind = 'patched' then
                head := agui_internal.fold_member(head, 'activityType', name);
            end if;
        when kind = 'new content' then
            head := agui_internal.fold_member(head, 'activityType', name);
            head := agui_internal.fold_member(head, 'content', '"\\content"');
            -- The owner moves to the end if it has changed.
            head := agui_internal.fold_member(head, 'subagentRunId', null);
            head := agui_internal.fold_member(head, 'subagentRunId', value);
    end case;
    return head;
end
$function$;

comment on function agui_internal.fold_new_head is
    'The head (agui_internal.fold_open) of a message or tool call after a change (agui_internal.fold_change). '
    '''grow'': its string begins.';

create or replace function agui_internal.fold_new_message(
    in step agui_internal.fold_step,
    in id text,
    in owner text,
    out role text,
    out body text,
    out head text,
    out content text
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    role := case step.action
        when 'show activity' then '"activity"'
        when 'start call' then '"assistant"'
        when 'add message' then (step.content::json -> 'role')::text
        else step.role
    end;
    case step.action
        when 'start message' then
            content := '""';
            head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"content":"\\content"', '"name":' || step.name, '"subagentRunId":' || owner
            ) || '}';

        when 'start call' then
            head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"toolCalls":"\\calls"', '"subagentRunId":' || owner
            ) || '}';

        when 'show activity' then
            content := step.content;
            head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"activityType":' || step.activity_type, '"content":"\\content"',
                '"subagentRunId":' || owner
            ) || '}';

        when 'add result' then
            body := agui_internal.json_unguard('{' || concat_ws(
                ',', '"id":' || id, '"toolCallId":' || step.id, '"role":' || role, '"content":' || step.content, '"subagentRunId":' || owner
            ) || '}');

        when 'add message' then
            body := agui_internal.json_unguard(step.content);
    end case;
    role := agui_internal.json_string_text(role);
end
$function$;

comment on function agui_internal.fold_new_message is
    'The message that a step adds, with this id and owner (its subagentRunId). Its members have '
    'the names and the order of the official client. The result is body, or head and content '
    '(agui_internal.fold_open).';

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.fold_open(
    in body text,
    in is_call boolean,
    out head text,
    out content text,
    out metadata text,
    out activity_type text
)
language plpgsql
immutable
parallel safe
as $function$
declare
    whole    constant pg_catalog.json := body;
    called   constant pg_catalog.json := case when is_call then whole operator(pg_catalog.->) 'function' end;
    function constant pg_catalog.json := case when pg_catalog.json_typeof(called) operator(pg_catalog.=) 'object' then called end;
    given    constant pg_catalog.json := whole operator(pg_catalog.->) 'metadata';
begin
    metadata := case when pg_catalog.json_typeof(given) operator(pg_catalog.=) 'object' then given end;
    activity_type := case when not is_call then whole operator(pg_catalog.->) 'activityType' end;
    content := case when is_call then function operator(pg_catalog.->) 'arguments' else whole operator(pg_catalog.->) 'content' end;

    head := agui_internal.json_member_set(
        body, 'metadata', coalesce(case when metadata is not null then '"\\metadata"' end, given::pg_catalog.text)
    );
    if function is not null then
        head := agui_internal.json_member_set(
            head,
            'function',
            agui_internal.json_member_set(function::pg_catalog.text, 'arguments', case when content is not null then '"\\content"' end)
        );
    elsif content is not null then
        head := agui_internal.json_member_set(head, 'content', '"\\content"');
    end if;
end
$function$;

comment on function agui_internal.fold_open is
    'Takes a message or a tool call (guarded JSON text) apart: what grows (content, or the '
    'arguments of a call), the metadata to merge with, the activityType, and the head, which is '
    'the object with marks in place of these parts.';

create or replace function agui_internal.fold_patched_body(body text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select agui_internal.json_unguard(
        agui_internal.json_member_set(
            agui_internal.json_guard(body),
            'content',
            agui_internal.json_guarded_from_jsonb(
                agui_internal.json_guard_numbers((agui_internal.json_guard(body)::json -> 'content')::text)::jsonb
            )
        )
    )
$function$;

comment on function agui_internal.fold_patched_body is
    'An activity whose content was patched outside of the database, in the spelling that patches '
    'in SQL produce: that of jsonb.';

create or replace function agui_internal.fold_piece_end(thread_key uuid, run_no int, after_seq bigint, through_seq bigint)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A piece takes a fraction of a second. Smaller pieces cost more, because each is a separate
    -- query.
    max_batches constant int := 1000;
    max_bytes   constant int := 1024 * 1024;
    page record;
begin
    select * into page
    from agui_internal.page_of_batches(thread_key, after_seq + 1, through_seq, array[run_no], max_batches, max_bytes);
    if page.has_more is not true then
        return through_seq;
    end if;
    return (
        select least(batch.first_seq + batch.n - 1, fold_piece_end.through_seq)
        from agui.batch as batch
        where batch.thread_key = fold_piece_end.thread_key and batch.first_seq = page.last_seq
    );
end
$$;

comment on function agui_internal.fold_piece_end is
    'The seq at which a fold of the events of a run after after_seq, up to through_seq, checks the '
    'time next: the end of a batch, about a thousand batches or 1 MB further on.';

-- Loops over queries get only arrays that they unnest: a cursor has copies in which finding an
-- element takes a search.
create or replace function agui_internal.fold_settle(
    fold agui_internal.fold,
    nodes agui_internal.fold_node[],
    bodies text[],
    contents text[],
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
    opened       record;
    patched      record;
    node         int;
    heads        text[];
    metadata     text[] := array[null];
    calls        text[];
begin
    if exists (select from unnest(changes) as change where change.kind in ('new message', 'new content')) then
        changes := agui_internal.fold_lasting(changes);
    end if;

    -- Take apart what changes, and change its head. Of many changes of a kind the first determines
    -- the place in the head, and the last the value.
    for part in
        select first.node, first.kind, first.text, first.name
        from (
            select change.node, change.kind, null as text, null as name, min(change.ordinality) as ordinality
            from unnest(changes) with ordinality as change
            where change.kind in ('open', 'new message', 'calls', 'grow', 'merge')
            group by change.node, change.kind
            union all
            select change.node, change.kind, change.text, change.name, change.ordinality
            from (
                select
                    change.*,
                    change.ordinality in (min(change.ordinality) over of_kind, max(change.ordinality) over of_kind) as counts
                from unnest(changes) with ordinality as change
                where change.kind in ('rename', 'encrypt', 'new content', 'patched')
                window of_kind as (partition by change.node, change.kind)
            ) as change
            where change.counts
        ) as first
        order by first.ordinality
    loop
        node := part.node;
        if part.kind in ('open', 'new message') then
            if nodes[node].is_head then
                heads[node] := bodies[node];
            else
                opened := agui_internal.fold_open(
                    case when nodes[node].parent is null then agui_internal.json_guard(bodies[node]) else bodies[node] end,
                    nodes[node].parent is not null
                );
                heads[node] := opened.head;
                contents[node] := coalesce(contents[node], opened.content);
                metadata[node] := opened.metadata;
            end if;
        elsif part.kind <> 'grow' or contents[node] is null then
            heads[node] := agui_internal.fold_new_head(heads[node], part.kind, part.text, part.name, nodes[node].parent is not null);
        end if;
    end loop;

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

    for part in
        select
            piece.node,
            agui_internal.merged_metadata(array_agg(piece.text order by piece.position)) as merged
        from (
            select base.node::int, base.text, 0 as position
            from unnest(metadata) with ordinality as base (text, node)
            where base.text is not null
            union all
            select change.node, change.text, change.ordinality
            from unnest(changes) with ordinality as change
            where change.kind = 'merge'
        ) as piece
        group by piece.node
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
                coalesce(agui_internal.fold_close(heads[place], contents[place], metadata[place], null), bodies[place])
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
                        agui_internal.fold_close(heads[first], contents[first], metadata[first], calls[first])
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

comment on function agui_internal.fold_settle is
    'Returns the fold with the messages that agui_internal.fold_segments has as nodes: nodes in one '
    'piece unchanged, the others put back together. The first `untouched` messages are those that '
    'the fold has. Adds the fuel that patches use; if it is exhausted, nothing else is changed.';

create or replace function agui_internal.fold_lasting(changes agui_internal.fold_change[])
returns agui_internal.fold_change[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    node int;
    new_message boolean[];
    new_content boolean[];
begin
    for place in reverse cardinality(changes) .. 1 loop
        node := changes[place].node;
        if new_message[node] or changes[place].kind in ('grow', 'patch') and new_content[node] then
            changes[place].kind := null;
        elsif changes[place].kind = 'new message' then
            new_message[node] := true;
        elsif changes[place].kind = 'new content' then
            new_content[node] := true;
        end if;
    end loop;
    return changes;
end
$function$;

comment on function agui_internal.fold_lasting is
    'The changes of agui_internal.fold_segments; those of something that was replaced later have no kind.';

create or replace function agui_internal.merged_metadata(objects text[])
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select case
        when cardinality(objects) > 1 is not true then objects[1]
        else (
            select '{' || coalesce(string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position), '') || '}'
            from (
                select
                    each.key,
                    (array_agg(each.value::text order by object.position desc, each.position desc))[1] as value,
                    min(array[object.position, each.position]) as position
                from unnest(objects) with ordinality as object (text, position)
                cross join lateral json_each(object.text::json) with ordinality as each (key, value, position)
                group by each.key
            ) as member
        )
    end
$function$;

comment on function agui_internal.merged_metadata is
    'Merges objects (guarded JSON) key by key; the last write wins. Null if there is none.';

create or replace function agui_internal.fold_activity(
    inout content text,
    in patches text[],
    in limits agui_internal.fold_limits,
    in fuel bigint,
    out last_applied int,
    out spent bigint,
    out octets bigint
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    is_unread constant boolean := coalesce(agui_internal.json_has_too_many_elements(content, limits.document_bytes), false);
    document  constant jsonb := case when is_unread then '0' else coalesce(agui_internal.json_guard_numbers(content), '{}') end;
    patched   record;
begin
    octets := agui_internal.json_size(case when is_unread then content else document::text end);
    patched := agui_internal.json_patch_apply(
        document, agui_internal.json_patches(patches, limits.document_bytes), limits, fuel, true, is_unread
    );
    if patched.last_applied > 0 then
        content := agui_internal.json_guarded_from_jsonb(patched.document);
    end if;
    last_applied := patched.last_applied;
    spent := patched.spent;
end
$function$;

comment on function agui_internal.fold_activity is
    'Applies patches to the content of an activity (guarded JSON text; null: none). A patch that '
    'fails has no effect. Returns the number of the last patch that succeeded (0: none), the fuel '
    'used, and the size of the content before. When more than fuel is used, the remaining patches '
    'are skipped.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_member(head text, name text, value text)
returns text
language sql
immutable
parallel safe
return case
    when head <> '{}' and strpos(head, '"' || name || '":') = 0
        then coalesce(left(head, -1) || ',"' || name || '":' || value || '}', head)
    else agui_internal.json_member_set(head, name, value)
end;

comment on function agui_internal.fold_member is
    'Faster form of agui_internal.json_member_set for a head of agui_internal.fold_segments, whose '
    'keys are in their usual spelling, without white space.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_close(head text, content text, metadata text, calls text)
returns text
language sql
immutable
parallel safe
return replace(
    replace(replace(head, '"\\calls"', coalesce(calls, '')), '"\\metadata"', coalesce(metadata, '')),
    '"\\content"',
    coalesce(content, '')
);

comment on function agui_internal.fold_close is
    'Puts the parts back together that agui_internal.fold_open took apart (guarded JSON text).';

create or replace function agui_internal.fold_size(fold agui_internal.fold)
returns bigint
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return octet_length(fold.state) + octet_length(fold.interrupts)
        + (select coalesce(sum(octet_length(body)), 0) from unnest(fold.bodies) as body);
end
$function$;

comment on function agui_internal.fold_size is
    'The size of a fold, which the setting fold_bytes limits: the bytes of its messages, state and '
    'interrupts, without pending patches.';
