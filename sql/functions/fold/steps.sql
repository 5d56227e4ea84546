-- The first half of the reducer in SQL: events become steps (agui_internal.fold_step, whose comment
-- lists the actions), which fold/events executes.
--
-- fold_steps interprets a single event: whether it is well-formed, to which stream a chunk belongs,
-- which spelling it has. It has no information about what a step will find, or whether the step has
-- an effect. Most events are another piece of a string. The pieces of a string become one step,
-- also if several strings grow in parallel: while nothing else happens to the messages, the order
-- in which they grow does not matter. So there are about an eighth as many steps as events.
--
-- - A field that is null counts as absent. An event with a field of the wrong type is skipped
--   before it has any effect. What follows RUN_ERROR in its run is skipped, until a RUN_STARTED.
-- - The strings that grow are returned before the next step for messages.
-- - It counts what events bring, in bytes, as compaction.Fold does: for a piece of a string the
--   piece plus one byte, for any other step the texts in it. A step `look` checks the limits after
--   each further quarter of fold_bytes, and after a patch that copies: to count each event exactly
--   would cost more than the fold.
-- - PL/pgSQL prefetches up to 50 rows of a query. So a batch that may be large is excluded from the
--   query for the others and read by a separate one. Memory is bounded by one batch, not by 50.

create or replace function agui_internal.fold_steps(
    thread_key uuid,
    run_nos int[],
    after_seqs bigint[],
    through_seqs bigint[],
    given json,
    takes_input boolean[],
    lanes text,
    limits agui_internal.fold_limits,
    known_ids text[]
)
returns setof agui_internal.fold_step
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    event record;

    -- The meaning of the event: a step, a piece of the string of the node that step.id names, and a
    -- patch of the activity that it names.
    step  agui_internal.fold_step;
    piece text;
    patch text;

    -- The strings that grow: their keys and their pieces (agui_internal.fold_growth). The last
    -- pieces of the string that grew last are in the buffer.
    grown_keys  text[] := '{}';
    grown_texts text[] := '{}';
    growing     int;
    buffer      text := '';

    -- The bytes so far, without the buffer; the bytes at which the next check is due; and how long
    -- the buffer may become until then.
    brought    bigint := 0;
    look_every constant bigint := greatest(limits.fold_bytes / 4, 1);
    next_look  bigint := look_every;
    long       bigint := least(4000, next_look);

    -- The event that brought the last piece, while no other event has followed.
    grown_type  text;
    grown_id    text;
    grown_owner text;

    -- The open chunk streams (agui_internal.fold_chunk).
    open_lanes jsonb;
    chunk      record;

    has_failed boolean := coalesce(lanes = agui_internal.failed_lanes(), false);  -- RUN_ERROR has ended the run
    -- What is open of thinking (agui_internal.thinking_as_reasoning), which is stored as the last of
    -- the lanes.
    thinking text[];
    named    record;
    run_id   text;
    -- The interrupts that the questions of the run make (agui_internal.question_interrupt), until its end. They
    -- are stored behind the lanes.
    asked    text[] := '{}';

    -- The raw event, and those of its batch, which begins at raws_seq.
    raw      json;
    raws     json[];
    raws_seq bigint;

    asks          boolean;  -- a question
    is_text       boolean;  -- it may start a message of text
    is_chunk      boolean;
    shows         boolean;  -- an activity
    patches       boolean;
    owner_fits    boolean;
    metadata_fits boolean;
    key           text;
    place         int;
    input         json;
    beside        record;  -- the input that is stored beside the events
    left_out_bytes bigint := 0;  -- of its messages that are known
    listed        bytea;   -- the messages of an earlier input (agui_internal.new_input)
    listed_bytes  bigint := 0;
    messages      json;
    content       text;
    patched       text;
    is_for_state  boolean;
    is_due        boolean;
    is_long       boolean;
    begins_run    boolean := false;
    last_seq      bigint;

    large     constant int := 256 * 1024;  -- bytes
    from_seq  bigint;  -- the batches that begin before it are folded
    large_seq bigint;  -- the beginning of the large batch that is read separately; null: none
begin
    if strpos(lanes, '"question"') > 0 then
        select
            coalesce(array_agg((lane.value -> 'interrupt')::text order by lane.position) filter (where lane.value ->> 'kind' = 'question'), '{}'),
            '[' || string_agg(lane.value::text, ',' order by lane.position) filter (where lane.value ->> 'kind' <> 'question') || ']'
        into asked, lanes
        from json_array_elements(agui_internal.json_guard(lanes)::json) with ordinality as lane (value, position);
        open_lanes := lanes;
    elsif not has_failed then
        open_lanes := agui_internal.json_guard(lanes);
    end if;
    if open_lanes[-1]['kind'] = '"thinking"' then
        thinking[1] := agui_internal.json_string_token(open_lanes[-1]['id']::text);
        open_lanes := nullif(open_lanes - -1, '[]');
    end if;
    <<segments>>
    for segment in 1 .. coalesce(cardinality(run_nos), 0) loop
    run_id := null;
    if thinking is not null and given is null then
        run_id := agui_internal.run_of_events(thread_key, run_nos[segment], null, null);
        thinking := case when thinking[1] ^@ (left(run_id, -1) || '-thinking-') then thinking end;
    end if;
    from_seq := 0;
    large_seq := null;
    if (has_failed or asked <> '{}') and given is null then
        -- Another run than the one that has failed, or asked, begins.
        if not exists (
            select from agui.run as run
            where run.thread_key = fold_steps.thread_key and run.run_no = run_nos[segment] and run.first_seq <= after_seqs[segment]
        ) then
            has_failed := false;
            asked := '{}';
        end if;
    end if;
    <<parts>>
    loop
    <<events>>
    for event in
        select
            element.*,
            case when element.type ^@ 'TOOL_CALL_' then element."toolCallId" else element."messageId" end::text as id,
            batch.first_seq,
            batch.is_put_off
        from (
            (
                select
                    stored.first_seq,
                    size.is_large as is_put_off,
                    case when size.is_large then '[{}]' else agui_internal.json_guarded(stored.events) end as events
                from agui.batch as stored
                cross join lateral (
                    select large_seq is null and agui_internal.batch_bytes(stored.events, stored.text_bytes) > large as is_large
                ) as size
                where stored.thread_key = fold_steps.thread_key
                and stored.run_no = run_nos[segment]
                and stored.first_seq >= from_seq
                and stored.first_seq <= coalesce(large_seq, through_seqs[segment])
                and stored.first_seq + stored.n - 1 > after_seqs[segment]
                and stored.first_seq >= coalesce(
                    (
                        select max(before.first_seq)
                        from agui.batch as before
                        where before.thread_key = fold_steps.thread_key
                        and before.first_seq <= after_seqs[segment] + 1
                    ),
                    1
                )
                order by stored.first_seq
            )
            union all
            select 1, false, agui_internal.json_guarded(given)
            where given is not null
        ) as batch
        cross join lateral json_populate_recordset(null::agui_internal.event_fields, batch.events) with ordinality as element
        where batch.is_put_off
        or element.ordinality > after_seqs[segment] - batch.first_seq + 1
        and element.ordinality <= through_seqs[segment] - batch.first_seq + 1
    loop
        -- Fast path: another piece of the string that grew last.

        if event.type = grown_type
            and event.id is not distinct from grown_id
            and event."subagentRunId"::text is not distinct from grown_owner
            and json_typeof(event.delta) = 'string'
            and coalesce(event.metadata, event.role, event.name, event."toolCallName", event."parentMessageId") is null
            and octet_length(buffer) < long
        then
            buffer := buffer || event.delta::text || E'\x01';
            continue;
        end if;

        -- Interpret the event.

        if has_failed and not event.is_put_off then
            has_failed := (event.type = any (agui_internal.event_types('start run'))) is not true;
            continue when has_failed;
        end if;
        grown_type := null;
        if asked <> '{}' and event.type = any (agui_internal.event_types('start run', 'fail run')) then
            asked := '{}';
        end if;
        if event.type = any (agui_internal.event_types(
            'start thinking', 'continue thinking', 'end thinking', 'start thinking span', 'end thinking span', 'start reasoning', 'end reasoning'
        )) or thinking is not null and event.type = any (agui_internal.event_types('start run', 'finish run', 'fail run')) then
            if given is not null or run_id is null then
                run_id := agui_internal.run_of_events(thread_key, run_nos[segment], given, event.ordinality);
            end if;
            named := agui_internal.thinking_as_reasoning(event.type, thinking, event.id, run_id, event.first_seq + event.ordinality - 1);
            event.type := named.type;
            event.id := named.id;
            thinking := named.opened;
        end if;
        owner_fits := (event."subagentRunId"::text ^@ '"') is not false;
        metadata_fits := (event.metadata::text ^@ '{') is not false;
        piece := null;
        patch := null;
        messages := null;
        step := null;
        step.seq := event.first_seq + event.ordinality - 1;
        step.id := event.id;
        step.is_call := event.type ^@ 'TOOL_CALL_';
        is_text := event.type = any (agui_internal.event_types('start text', 'chunk text'));
        step.owner := event."subagentRunId"::text;
        step.metadata := event.metadata::text;

        is_chunk := event.type = any (agui_internal.event_types('chunk text', 'chunk reasoning', 'chunk tool'));
        asks := event.type = any (agui_internal.event_types('ask'))
            and owner_fits
            and event.name::text = to_json(agui_internal.question_name())::text;
        if is_chunk and event.delta is null or asks or event.snapshot is null and event.type = any (agui_internal.event_types('set state')) then
            if raws_seq is distinct from event.first_seq then
                raws := agui_internal.fold_raw_events(thread_key, event.first_seq, given);
                raws_seq := event.first_seq;
            end if;
            raw := raws[event.ordinality];
        end if;

        case
            when event.type = any (agui_internal.event_types('continue text', 'continue reasoning', 'continue tool')) then
                continue when (owner_fits and metadata_fits and event.id ^@ '"' and json_typeof(event.delta) = 'string') is not true;
                piece := event.delta;

            when is_chunk then
                continue when not owner_fits
                    or not metadata_fits
                    or not event.id ^@ '"'
                    or json_typeof(event.delta) <> 'string'
                    or is_text and (not event.role::text ^@ '"' or not event.name::text ^@ '"')
                    or step.is_call and (not event."toolCallName"::text ^@ '"' or not event."parentMessageId"::text ^@ '"');
                chunk := agui_internal.fold_chunk(
                    open_lanes,
                    case when is_text then 'text' when step.is_call then 'tool' else 'reasoning' end,
                    step.id,
                    step.owner
                );
                continue when chunk.id is null or step.is_call and event."toolCallName" is null and not chunk.goes_on;
                open_lanes := chunk.lanes;
                step.id := chunk.id;
                if jsonb_array_length(open_lanes) > limits.fold_lanes and not chunk.goes_on then
                    step.action := 'refuse lanes';
                elsif chunk.goes_on then
                    continue when event.delta is null and not agui_internal.fold_chunk_has_content(raw);
                    piece := coalesce(event.delta::text, '""');
                else
                    step.action := case when step.is_call then 'start call' else 'start message' end;
                    piece := coalesce(event.delta::text, case when raw -> 'rawEvent' is not null then '""' end);
                end if;

            when event.type = any (agui_internal.event_types('start text', 'start reasoning')) then
                continue when (owner_fits and metadata_fits and event.id ^@ '"') is not true
                    or is_text and (not event.role::text ^@ '"' or not event.name::text ^@ '"');
                step.action := 'start message';

            when event.type = any (agui_internal.event_types('start tool')) then
                continue when (owner_fits and metadata_fits and event.id ^@ '"' and event."toolCallName"::text ^@ '"') is not true
                    or not event."parentMessageId"::text ^@ '"';
                step.action := 'start call';

            when event.type = any (agui_internal.event_types('end text', 'end reasoning', 'end tool')) then
                continue when (owner_fits and metadata_fits and event.id ^@ '"') is not true;
                step.action := case when event.metadata is not null then 'merge' end;

            when event.type = any (agui_internal.event_types('add result')) then
                step.content := event.content;
                step.parent_id := event."messageId";
                continue when (
                        owner_fits and metadata_fits and event.id ^@ '"' and step.parent_id ^@ '"' and left(step.content, 1) in ('"', '[')
                    ) is not true
                    or not event.role::text ^@ '"';
                step.action := 'add result';
                step.role := coalesce(nullif(event.role::text, '""'), '"tool"');

            when event.type = any (agui_internal.event_types('show activity', 'patch activity', 'show or patch activity')) then
                shows := event.type = any (agui_internal.event_types('show activity'));
                patches := event.type = any (agui_internal.event_types('patch activity'));
                step.activity_type := event."activityType";
                step.replaces := not shows or event.replace::text is distinct from 'false';
                step.content := case when shows then event.content when not patches then event.snapshot end;
                patch := case when not shows then event.patch end;
                continue when (metadata_fits and event.id ^@ '"' and step.activity_type ^@ '"') is not true
                    or not owner_fits and not patches
                    or not step.content ^@ '{'
                    or shows and (step.content is null or event.replace::text not in ('true', 'false'))
                    or not shows and not patches
                        and (step.content is null and patch is null or left(patch, 1) not in ('[', '{'));
                patch := case
                    when patches then coalesce(patch, '[]')
                    when patch ^@ '{' then '[' || patch || ']'
                    else patch
                end;
                step.action := case when step.content is not null then 'show activity' end;

            when event.type = any (agui_internal.event_types('encrypt')) then
                step.id := event."entityId";
                step.is_call := (event.subtype::text = '"tool-call"') is true;
                step.content := event."encryptedValue";
                step.metadata := null;
                continue when (step.id ^@ '"' and step.content ^@ '"') is not true or not event.subtype::text ^@ '"';
                step.action := 'encrypt';

            when event.type = any (agui_internal.event_types('list messages')) then
                continue when (metadata_fits and event.messages::text ^@ '[') is not true;
                step.action := 'list messages';
                step.messages := event.messages;
                known_ids := '{}';
                listed := null;

            when event.type = any (agui_internal.event_types('set state')) then
                step.content := coalesce(event.snapshot, raw -> 'snapshot', raw -> 'state');
                continue when not owner_fits or step.content is null;
                step.action := 'set state';

            when event.type = any (agui_internal.event_types('patch state')) then
                step.content := coalesce(event.delta::text, event.patch::text);
                continue when (owner_fits and left(step.content, 1) in ('[', '{')) is not true or event.delta::text ^@ '{';
                step.action := 'patch state';
                if step.content ^@ '{' then
                    step.content := '[' || step.content || ']';
                end if;

            when event.type = any (agui_internal.event_types('start run')) then
                -- A run begins with its input: messages, of which the new ones are added, and a
                -- state.
                input := event.input;
                if takes_input[segment] then  -- the input that is stored beside the events
                    takes_input[segment] := false;
                    select * into beside from agui_internal.new_input(thread_key, run_nos[segment], known_ids, listed, listed_bytes);
                    input := agui_internal.json_guarded(beside.input);
                    known_ids := known_ids || beside.new_ids;
                    left_out_bytes := coalesce(beside.left_out_bytes, 0);
                    listed := beside.listed;
                    listed_bytes := beside.listed_bytes;
                end if;
                messages := input -> 'messages';
                continue when not input::text ^@ '{' or json_typeof(messages) not in ('array', 'null');
                if json_typeof(messages) = 'null' then
                    messages := null;
                end if;
                step.metadata := null;
                step.content := nullif((input -> 'state')::text, 'null');
                step.action := case when step.content is not null then 'set state' end;
                begins_run := given is not null;

            when event.type = any (agui_internal.event_types('finish run')) then
                step.content := '[]';
                if json_typeof(event.outcome) = 'object' and agui_internal.json_string_token((event.outcome -> 'type')::text) = '"interrupt"' then
                    continue when json_typeof(event.outcome -> 'interrupts') is distinct from 'array';
                    step.content := agui_internal.fold_interrupts(event.outcome -> 'interrupts');
                elsif asked <> '{}' and coalesce(event.outcome::text, 'null') = 'null' then
                    step.content := agui_internal.json_unguard('[' || array_to_string(asked, ',') || ']');
                end if;
                asked := '{}';
                step.action := 'set interrupts';

            when event.type = any (agui_internal.event_types('changes nothing')) then
                -- It closes chunk streams, and RUN_ERROR ends the run.
                has_failed := event.type = any (agui_internal.event_types('fail run'));
                if asks then
                    asked := asked || agui_internal.question_interrupt(
                        raw, agui_internal.run_of_events(thread_key, run_nos[segment], given, event.ordinality), cardinality(asked)
                    );
                end if;
                continue when open_lanes is null or not owner_fits and event.type <> all (agui_internal.event_types('fail run'));

            else
                exit events when event.is_put_off;
                continue;
        end case;

        if step.action = 'start call' then
            step.name := event."toolCallName";
            step.parent_id := event."parentMessageId";
        elsif step.action = 'start message' then
            step.name := case when is_text then event.name end;
            step.role := case when is_text then coalesce(event.role::text, '"assistant"') else '"reasoning"' end;
        end if;

        -- Close the chunk streams that end with it.

        if open_lanes is not null then
            open_lanes := case
                when event.type = any (agui_internal.event_types('closes all')) then null
                when event.type = any (agui_internal.event_types('closes own'))
                    or event.type = any (agui_internal.event_types('closes named')) and event."subagentRunId" is not null
                    then agui_internal.fold_close_lane(open_lanes, event."subagentRunId"::text)
                else open_lanes
            end;
        end if;

        -- A piece that is large is a step, and never copied to the buffer.
        is_long := octet_length(piece) > large;

        -- Return the strings that grew: before the next step for messages, and when they are many
        -- or long. Steps for the state and the run are independent of steps for the messages.

        is_for_state := step.action in ('set state', 'patch state', 'set interrupts');
        if patch is not null or step.action = 'patch state' then
            patched := coalesce(patch, step.content);
            step.costs := patched ~ '"copy"|"move"|/[0-9]+"|\\u00';
            step.copies := step.costs and agui_internal.fold_patch_copies(patched);
        end if;
        is_due := brought + octet_length(buffer) >= next_look;
        if growing is not null
            and (
                case when is_for_state then messages is not null else coalesce(step.action, patch, messages::text) is not null end
                or piece is not null and (step.metadata is not null or is_long)
                or cardinality(grown_keys) > 30
                or octet_length(buffer) + octet_length(grown_texts[growing]) > 4000
                or is_due
                or step.copies
                or begins_run
            )
        then
            brought := brought + octet_length(buffer);
            grown_texts[growing] := grown_texts[growing] || buffer;
            for place in 1 .. cardinality(grown_keys) loop
                return next agui_internal.fold_growth(step.seq, grown_keys[place], grown_texts[place]);
            end loop;
            grown_keys := '{}';
            grown_texts := '{}';
            growing := null;
            buffer := '';
        end if;
        if is_due then
            return next agui_internal.fold_look('look', brought);
            next_look := (brought / look_every + 1) * look_every;
        end if;
        if begins_run then
            return next agui_internal.fold_look('end run', brought);
            begins_run := false;
            brought := 0;
            next_look := look_every;
        end if;

        -- Count what the event brings.

        if coalesce(step.action, patch, messages::text, case when piece is not null then step.metadata end) is not null then
            brought := brought + octet_length(concat(
                step.id, step.owner, step.metadata, event.role, step.name, step.parent_id, step.activity_type, step.content, step.messages,
                patch, messages, case when step.action is null then piece end
            )) + left_out_bytes;
            left_out_bytes := 0;
        elsif is_long then
            brought := brought + octet_length(piece) + 1;
        end if;
        long := least(4000, next_look - brought);

        -- Return the steps of this event. Its metadata belongs to the first of them.

        if step.action is not null then
            return next step;
            exit segments when step.action = 'refuse lanes';
            step.metadata := null;
        end if;
        if is_for_state then
            if step.copies then
                return next agui_internal.fold_look('look', brought);
            end if;
            continue when messages is null;
        end if;

        if messages is not null then
            step.action := 'add message';
            foreach content in array agui_internal.fold_message_list(messages) loop
                step.id := content::json -> 'id';
                step.id := case when step.id ^@ '"' then agui_internal.json_string_token(step.id) end;
                step.content := content;
                return next step;
            end loop;

        elsif patch is not null or piece is not null and (step.metadata is not null or is_long) then
            step.action := case when patch is not null then 'patch activity' else 'grow' end;
            step.content := coalesce(patch, piece);
            return next step;
            if step.copies then
                return next agui_internal.fold_look('look', brought);
            end if;

        elsif piece is not null then
            key := case when step.is_call then 'call ' || step.id else step.id end;
            place := array_position(grown_keys, key);
            if place is null then
                place := cardinality(grown_keys) + 1;
                grown_keys[place] := key;
                grown_texts[place] := '';
            end if;
            if growing <> place then
                brought := brought + octet_length(buffer);
                long := least(4000, next_look - brought);
                grown_texts[growing] := grown_texts[growing] || buffer;
                buffer := '';
            end if;
            growing := place;
            buffer := buffer || piece || E'\x01';
            grown_type := event.type;
            grown_id := event.id;
            grown_owner := event."subagentRunId";
        end if;
    end loop events;
    -- The variable keeps the last event of the loop; null: there was none.
    if event.is_put_off then
        large_seq := event.first_seq;
        from_seq := large_seq;
        continue parts;
    end if;
    last_seq := coalesce(event.first_seq + event.ordinality - 1, last_seq);
    exit parts when large_seq is null;
    from_seq := large_seq + 1;
    large_seq := null;
    end loop parts;

    if growing is not null then
        brought := brought + octet_length(buffer);
        grown_texts[growing] := grown_texts[growing] || buffer;
        for place in 1 .. cardinality(grown_keys) loop
            return next agui_internal.fold_growth(last_seq, grown_keys[place], grown_texts[place]);
        end loop;
        grown_keys := '{}';
        grown_texts := '{}';
        growing := null;
        buffer := '';
    end if;
    if segment < cardinality(run_nos) then
        return next agui_internal.fold_look('end run', brought);
        grown_type := null;
        brought := 0;
        next_look := look_every;
        long := least(4000, next_look);
    end if;
    end loop segments;

    step := null;
    step.seq := last_seq;
    step.action := 'end';
    if thinking[1] is not null then
        open_lanes := coalesce(open_lanes, '[]') || jsonb_build_object('lane', null, 'kind', 'thinking', 'id', thinking[1]::jsonb);
    end if;
    step.content := case when has_failed then agui_internal.failed_lanes() else agui_internal.json_unguard(open_lanes::text) end;
    if asked <> '{}' and not has_failed then
        step.content := coalesce(left(step.content, -1) || ',', '[') || agui_internal.json_unguard((
            select string_agg('{"lane":null,"kind":"question","id":"","interrupt":' || question.interrupt || '}', ',' order by question.position)
            from unnest(asked) with ordinality as question (interrupt, position)
        )) || ']';
    end if;
    step.brought := brought;
    return next step;
end
$function$;

comment on function agui_internal.fold_steps is
    'Translates events to steps of a fold. The arguments are those of agui_internal.fold_events, '
    'the chunk lanes that are open before, the limits, and the ids of the messages before.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_growth(seq bigint, key text, pieces text)
returns agui_internal.fold_step
language sql
immutable
parallel safe
return (
    seq,
    'grow',
    case when key ^@ 'call ' then substr(key, 6) else key end,
    key ^@ 'call ',
    null,
    null,
    replace(rtrim(pieces, E'\x01'), E'"\x01"', ''),
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null
)::agui_internal.fold_step;

comment on function agui_internal.fold_growth is
    'The step that appends pieces to a string. pieces: JSON strings, each followed by the '
    'separator U+0001, which no JSON text contains. key: the id of a message, or ''call '' and the '
    'id of a tool call.';

-- Chunks are a shorthand. A lane (a subagent, or the main agent) has at most one open stream, and a
-- chunk without an id continues the stream of its lane. A chunk without a lane continues the stream
-- of the main agent, or the only open stream of its kind.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.fold_chunk(
    inout lanes jsonb,
    in kind text,
    inout id text,
    in owner text,
    out goes_on boolean
)
language plpgsql
immutable
parallel safe
as $function$
declare
    lane       pg_catalog.jsonb;
    stream     pg_catalog.jsonb;
    candidates int := 0;
begin
    for position in 1 .. coalesce(pg_catalog.jsonb_array_length(lanes), 0) loop
        lane := lanes[position operator(pg_catalog.-) 1];
        continue when (lane operator(pg_catalog.->>) 'kind') operator(pg_catalog.<>) kind;
        if id is not null then
            stream := coalesce(stream, case when lane['id'] operator(pg_catalog.=) id::pg_catalog.jsonb then lane end);
        elsif owner is not null then
            stream := coalesce(stream, case when lane['lane'] operator(pg_catalog.=) owner::pg_catalog.jsonb then lane end);
        elsif lane['lane'] operator(pg_catalog.=) 'null' then
            stream := lane;
            exit;
        else
            candidates := candidates operator(pg_catalog.+) 1;
            stream := case when candidates operator(pg_catalog.=) 1 then lane end;
        end if;
    end loop;

    goes_on := stream is not null;
    if goes_on then
        id := agui_internal.json_string_token(stream['id']::pg_catalog.text);
    elsif id is not null then
        lanes := coalesce(agui_internal.fold_close_lane(lanes, owner), '[]')
            operator(pg_catalog.||) pg_catalog.jsonb_build_object('lane', owner::pg_catalog.jsonb, 'kind', kind, 'id', id::pg_catalog.jsonb);
    end if;
end
$function$;

comment on function agui_internal.fold_chunk is
    'The id that a chunk belongs to (null: none), whether it continues an open stream, and the '
    'lanes that are open after it. Ids and owner are JSON strings of guarded text, null if the '
    'chunk does not state them.';

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.fold_close_lane(lanes jsonb, owner text)
returns jsonb
language plpgsql
immutable
parallel safe
as $function$
begin
    if pg_catalog.jsonb_array_length(lanes) operator(pg_catalog.=) 1 then
        return case when lanes[0]['lane'] operator(pg_catalog.<>) coalesce(owner, 'null')::pg_catalog.jsonb then lanes end;
    end if;
    return (
        select pg_catalog.jsonb_agg(lane.value order by lane.position)
        from pg_catalog.jsonb_array_elements(lanes) with ordinality as lane (value, position)
        where lane.value['lane'] operator(pg_catalog.<>) coalesce(owner, 'null')::pg_catalog.jsonb
    );
end
$function$;

comment on function agui_internal.fold_close_lane is
    'The open lanes without the lane of a subagent (a JSON string of guarded text; null: the main '
    'agent); null if none remains.';

create or replace function agui_internal.failed_lanes()
returns text
language sql
immutable
parallel safe
return '[{"lane":null,"kind":"failed","id":""}]';

comment on function agui_internal.failed_lanes is
    'The lanes of a fold whose run has failed: none is open, and what follows in the run has no '
    'effect. The fold in Go writes the same.';

-- The official client of protocol 1.0 reads an event of thinking as one of reasoning, whose id it
-- makes up. Readers of a log must agree on the id, so it is made of the run and of the seq of the
-- event that began the message. A piece or an end of nothing gets an id that nothing else has. What
-- compaction has written as reasoning opens and ends the same message: what follows may be thinking.
-- compaction.Thinking does the same.
create or replace function agui_internal.thinking_as_reasoning(
    inout type   text,
    inout opened text[],
    inout id     text,
    in    run_id text,
    in    seq    bigint
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    infix constant text := left(coalesce(run_id, '""'), -1) || '-thinking-';
    place constant int := case
        when type = any (agui_internal.event_types('start thinking span', 'end thinking span', 'start span', 'end span')) then 2
        else 1
    end;
    starts constant boolean := type = any (
        agui_internal.event_types('start thinking', 'start thinking span', 'start reasoning', 'start span')
    );
    meant constant text := case
        when type = any (agui_internal.event_types('start thinking')) then (agui_internal.event_types('start reasoning'))[1]
        when type = any (agui_internal.event_types('continue thinking')) then (agui_internal.event_types('continue reasoning'))[1]
        when type = any (agui_internal.event_types('end thinking')) then (agui_internal.event_types('end reasoning'))[1]
        when type = any (agui_internal.event_types('start thinking span')) then (agui_internal.event_types('start span'))[1]
        when type = any (agui_internal.event_types('end thinking span')) then (agui_internal.event_types('end span'))[1]
    end;
begin
    if type = any (agui_internal.event_types('start run', 'finish run', 'fail run')) then
        opened := null;
        return;
    elsif meant is not null then
        type := meant;
        id := case when not starts then opened[place] end;
        id := coalesce(id, infix || seq || '"');
    elsif starts and (id ^@ infix and substr(id, length(infix) + 1) ~ '^[0-9]+"$') is not true then
        return;
    end if;
    if starts then
        opened[place] := id;
    elsif opened[place] = id and type = any (agui_internal.event_types('end reasoning', 'end span')) then
        opened[place] := null;
    end if;
end
$function$;

comment on function agui_internal.thinking_as_reasoning is
    'The type and the id of the event of reasoning that an event of thinking means; those of other '
    'events stay. opened has the ids of the message and of the span that are open, and changes with '
    'the event. Ids and run_id (null: unknown) are JSON strings of guarded text.';

create or replace function agui_internal.run_of_events(thread_key uuid, run_no int, given json, until bigint)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if given is null then
        return (
            select agui_internal.json_string_token(agui_internal.json_guard(to_json(run.run_id)::text))
            from agui.run as run
            where run.thread_key = run_of_events.thread_key and run.run_no = run_of_events.run_no
        );
    end if;
    return (
        select case when started.id ^@ '"' then agui_internal.json_string_token(started.id) end
        from json_array_elements(agui_internal.json_guarded(given)) with ordinality as event (value, position)
        cross join lateral (select (event.value -> 'runId')::text as id) as started
        where event.position <= until
        and agui_internal.event_type(event.value) = any (agui_internal.event_types('start run'))
        order by event.position desc
        limit 1
    );
end
$function$;

comment on function agui_internal.run_of_events is
    'The id of a run of the log; of events that are given instead, the one that the last RUN_STARTED '
    'before a position names (null: none). A JSON string of guarded text.';

create or replace function agui_internal.fold_raw_events(thread_key uuid, first_seq bigint, given json)
returns json[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return array(
        select json_array_elements(agui_internal.json_guarded(batch.events))
        from (
            select given
            where given is not null
            union all
            select stored.events
            from agui.batch as stored
            where stored.thread_key = fold_raw_events.thread_key and stored.first_seq = fold_raw_events.first_seq
        ) as batch (events)
    );
end
$function$;

comment on function agui_internal.fold_raw_events is
    'The events of a batch, or the given events, one by one and unchanged (guarded JSON). '
    'agui_internal.event_fields cannot distinguish a null member from a missing one, and lacks '
    'members without a meaning.';

create or replace function agui_internal.fold_chunk_has_content(event json)
returns boolean
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    type constant text := event ->> 'type';
begin
    return exists (
        select
        from json_each(event) as member
        where case
            when member.key in ('type', 'timestamp') then false
            when member.key = 'delta' then json_typeof(member.value) <> 'null'
            when member.key = 'subagentRunId' then json_typeof(member.value) = 'null'
            when type = any (agui_internal.event_types('chunk text')) then member.key not in ('messageId', 'role', 'name')
            when type = any (agui_internal.event_types('chunk tool')) then member.key not in ('toolCallId', 'toolCallName', 'parentMessageId')
            else member.key <> 'messageId'
        end
    );
end
$function$;

comment on function agui_internal.fold_chunk_has_content is
    'Whether a chunk (guarded JSON) that continues an open stream becomes a content event: if it '
    'has a delta, or anything else that the client passes on in an empty one (metadata, a '
    'rawEvent, an unknown member).';

create or replace function agui_internal.fold_interrupts(interrupts json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    interrupt json;
    read      text;
    name      text;
    list      text := '';
begin
    for interrupt in select element.value from json_array_elements(interrupts) with ordinality as element (value, position) order by element.position loop
        read := interrupt::text;
        if json_typeof(interrupt) = 'object' then
            foreach name in array '{subagentRunId,message,toolCallId,responseSchema,expiresAt,metadata}'::text[] loop
                if (interrupt -> name)::text = 'null' then
                    read := agui_internal.json_member_set(read, name, null);
                end if;
            end loop;
        end if;
        list := list || ',' || read;
    end loop;
    return agui_internal.json_unguard('[' || substr(list, 2) || ']');
end
$function$;

comment on function agui_internal.fold_interrupts is
    'The interrupts of a RUN_FINISHED event (guarded JSON) as JSON text, without members that are null '
    'and may be absent.';

create or replace function agui_internal.fold_patch_copies(patch text)
returns boolean
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return patch ~ '"copy"|\\u00'
        and exists (
            select
            from json_array_elements(patch::json) as operation (value)
            where json_typeof(operation.value) = 'object' and operation.value ->> 'op' = 'copy'
        );
end
$function$;

comment on function agui_internal.fold_patch_copies is
    'Whether a JSON patch (guarded JSON text, an array) has an operation "copy".';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_look(action text, brought bigint)
returns agui_internal.fold_step
language sql
immutable
parallel safe
return (
    null, action, null, null, null, null, null, null, null, null, null, null, null, null, null, brought
)::agui_internal.fold_step;

comment on function agui_internal.fold_look is
    'The step in which agui_internal.fold_segments checks whether the fold is within its limits. '
    'brought: the bytes of events so far.';
