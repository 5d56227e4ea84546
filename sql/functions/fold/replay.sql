-- A lineage as events for a client: agui.replay, agui.attach and their parts, in frames that a
-- client takes.
--
--    fold ─► history_part ─► replay_part 1: a list of messages, a state, what is open
--                            replay_part 2 …: an earlier run whose input carries the next messages
--
-- - The official client 1.0.0 refuses a frame of more than 10 MiB, and a server should not hold a
--   whole conversation. So a history of more than 8 MiB comes in parts. Each is computed from the
--   fold, so a caller keeps nothing open between two of them.
-- - A list of messages removes what it does not name, so only the first part has one. Each further
--   part is an earlier run whose RUN_STARTED carries messages in its input, which the client
--   appends as they are. It leaves out a message whose id it has: the result of a tool with such an
--   id comes as TOOL_CALL_RESULT.
-- - A state that is larger than a part is an empty STATE_SNAPSHOT and patches that fill it
--   (state_events). What no frame can hold is left out, and the history ends with a RUN_ERROR that
--   names it.
-- - The client's verifier ties what a list names to the agents of the list, until the next run
--   starts. In the log a new run may use any id. So while the run may still get events, the history
--   is in an earlier run, and reopening_events starts what the run has open.

create or replace function agui_internal.attach_at(
    thread_id text,
    run_id    text,
    at_seq    bigint,
    at_time   timestamptz,
    after_seq bigint,
    shape     text,
    scope     text,
    customs_of text,
    part      int,
    part_bytes int,
    out answer agui.attachment,
    out next_part int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    key    constant uuid := agui_internal.visible_thread_key(scope, thread_id);
    behind constant bigint := greatest(after_seq, 0);
    is_standby constant boolean := pg_is_in_recovery();  -- a standby may not have received the events yet
    leaf   agui.run;
    sent   record;
begin
    if shape is null or shape not in ('snapshot', 'stream', 'events') then
        raise exception using
            errcode = 'UI013',
            message = format('unknown shape %s: use "snapshot", "stream" or "events"', coalesce('"' || shape || '"', 'null'));
    elsif behind > 0 and shape <> 'events' then
        raise exception using
            errcode = 'UI013',
            message = format('attach to thread "%s": shape "%s" contains the whole history, so it cannot begin after seq %s', thread_id, shape, behind),
            hint = 'A snapshot replaces what the client has: request it without a seq. Or request the shape "events".';
    end if;

    select batch.first_seq + batch.n - 1 into answer.seq
    from agui_internal.batch_with(key, 9223372036854775807) as batch;
    if not found and run_id is null and (behind = 0 or is_standby) then
        answer.running := '{}';
        answer.seq := behind;
        answer.events := '[]';
        return;
    end if;
    leaf := agui_internal.find_run(thread_id, run_id, scope);
    if behind > answer.seq and not is_standby then
        raise exception using
            errcode = 'UI017',
            message = format('thread "%s" ends at seq %s, but the reader has already seen seq %s', thread_id, answer.seq, behind),
            hint = 'A crash without synchronous_commit, or a failover, lost the last events. Attach without after_seq.';
    end if;

    answer.run_id := leaf.run_id;
    answer.status := leaf.status;
    answer.running := array(
        select run.run_id
        from agui.run as run
        where run.thread_key = key and run.status = 'running'
        order by run.run_no
    );
    answer.seq := greatest(least(answer.seq, agui_internal.seq_at(key, at_seq, at_time)), 0);
    if shape = 'snapshot' then
        sent := agui_internal.history_part(thread_id, leaf, answer.seq, customs_of, part, part_bytes);
        answer.events := sent.events;
        next_part := sent.next_part;
    else
        answer.events := case shape
            when 'events' then agui_internal.lineage_events(thread_id, leaf, behind, answer.seq, with_inputs => false)
            else agui_internal.replay_events(thread_id, leaf, answer.seq, shape)
        end;
    end if;
    answer.seq := greatest(answer.seq, behind);
    answer.recorded_at := (
        select agui_internal.event_time(batch.recorded_at, batch.earlier_us[answer.seq - batch.first_seq + 1])
        from agui_internal.batch_with(key, answer.seq) as batch
        where answer.seq < batch.first_seq + batch.n
    );
end
$function$;

comment on function agui_internal.attach_at is
    'What agui.attach and agui.attach_part return: the attachment with one part of its history, and '
    'the number of the next part.';

create or replace function agui_internal.replay_events(thread_id text, leaf agui.run, until bigint, shape text)
returns json
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    run constant agui.run := agui_internal.run_at(leaf, until);
begin
    if shape = 'snapshot' then
        return (agui_internal.history_part(thread_id, leaf, until, null, 1, 2147483647)).events;
    elsif run.run_no is null then
        return '[]';
    end if;
    perform agui_internal.refuse_quarantined(run, until);
    return agui.compact_events(
        agui_internal.lineage_events(thread_id, run, 0, until, with_inputs => true), shape
    );
end
$function$;

comment on function agui_internal.replay_events is
    'The result of agui.replay for the lineage of a run, up to a seq (null: all of it), as a JSON '
    'array.';

create or replace function agui_internal.history_part(
    thread_id text,
    leaf agui.run,
    until bigint,
    customs_of text,
    part int,
    part_bytes int,
    out events json,
    out next_part int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    run  constant agui.run := agui_internal.run_at(leaf, until);
    sent record;
begin
    if run.run_no is null then
        events := '[]';
        return;
    end if;
    perform agui_internal.refuse_quarantined(run, until);
    sent := agui_internal.replay_part(thread_id, run, until, customs_of, part, part_bytes);
    next_part := sent.next_part;
    if sent.events is null and next_part is null then
        events := agui_internal.replay_events(thread_id, leaf, until, 'stream');
    else
        events := '[' || coalesce(sent.events, '') || ']';
    end if;
end
$function$;

comment on function agui_internal.history_part is
    'A part of the history of the lineage of a run (agui_internal.replay_part), and the number of the next '
    'one. If a snapshot cannot express its meaning, it is the compacted stream, in one part.';

-- The verifier of a client assigns the messages in a list to the agents that the list names, until
-- the next run starts. In the log, messages of earlier runs are assigned to no agent. So while the
-- run may still get events, the history is placed in an earlier run, unless it is only what the
-- main agent said in this one.
--
-- A history that is larger than one part comes in several. A list of messages removes what it does
-- not name, so the first part alone has one. The input of a RUN_STARTED appends the messages of the
-- others, each as it is; it leaves out a message whose id the client has, so the result of a tool
-- that has the id of another message comes as the event that makes it.
create or replace function agui_internal.replay_part(
    thread_id text,
    run agui.run,
    until bigint,
    customs_of text,
    part int,
    part_bytes int,
    out events text,
    out next_part int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    fold     agui_internal.fold := agui_internal.fold_at(run, until);
    thread   constant text := '"threadId":' || to_json(thread_id);
    has_ended constant boolean := run.last_seq is not null and coalesce(run.end_seq, run.last_seq) <= coalesce(until, run.last_seq);
    parent   text;   -- the id of the parent run
    ending   text;   -- the event that ended the run
    opened   text;   -- what the run has open
    claimed  text;   -- the owners of its messages
    history  text;
    is_apart boolean := false;
    earlier  text;   -- the ids of the earlier run
    outcome  text;   -- interrupts that the end of the run does not state: an earlier run ended with them
    questions text;  -- what the run asks, as it asked: a client answers another question in another way
    asked_before text;  -- what an earlier run asked
    asking   text;   -- the id of that run
    pieces   int[];  -- the last messages of the parts before the last one; null: one part has all
    state    record; -- the events of the state, if the history has several parts
    left_out text;   -- the failure that says what no client takes
begin
    select ancestor.run_id into parent
    from agui.run as ancestor
    where ancestor.thread_key = run.thread_key and ancestor.run_no = run.parent_no;
    if octet_length(fold.state) + (select coalesce(sum(octet_length(body) + 1), 0) from (select unnest(fold.bodies) as body) as message) > part_bytes then
        earlier := thread || ',"runId":' || to_json(coalesce(parent, run.run_id));
        pieces := agui_internal.message_pieces(fold.bodies, part_bytes);
        next_part := part + 1;
        if part <= cardinality(pieces) then
            events := agui_internal.messages_part(fold, coalesce(pieces[part - 1], 0) + 1, pieces[part], earlier);
            return;
        end if;
        state := agui_internal.state_events(fold.state, part_bytes);
        if part <= cardinality(pieces) + cardinality(state.events) then
            events := concat_ws(
                ',', '{"type":"RUN_STARTED",' || earlier || '}', state.events[part - cardinality(pieces)], '{"type":"RUN_FINISHED",' || earlier || '}'
            );
            return;
        end if;
        next_part := null;
        left_out := agui_internal.too_large_failure(fold, pieces[1], state.too_large);
    end if;

    if has_ended then
        if run.end_seq is null then  -- agui_internal.find_ends has not found it yet
            run.end_seq := (agui_internal.last_end(run.thread_key, run.run_no)).seq;
        end if;
        select element.payload into ending
        from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
        where batch.first_seq + element.position - 1 = run.end_seq;
        opened := agui_internal.compact_lanes(fold);
    else
        opened := agui_internal.reopening_events(run, until, fold);
        if opened is null and pieces is null then
            return;
        end if;
        claimed := agui_internal.claimed_messages(run, until, fold);
        is_apart := parent is not null or strpos(opened || array_to_string(fold.bodies, ''), 'subagentRunId') > 0;
    end if;

    questions := agui_internal.question_events(fold.interrupts);
    if not agui_internal.json_equal(fold.interrupts, (agui_internal.fold_given(null, coalesce(ending, ''))).interrupts) then
        if questions is null then
            outcome := ',"outcome":{"type":"interrupt","interrupts":' || fold.interrupts || '}';
        elsif run.status <> 'interrupted' or not has_ended then
            asked_before := questions;
            asking := (agui_internal.asking_run(run)).run_id;
        end if;
    end if;
    questions := case when asked_before is null then questions end;
    if questions is null and not has_ended and strpos(fold.lanes, '"question"') > 0 then
        questions := agui_internal.question_events((
            select json_agg(lane.value -> 'interrupt')::text from json_array_elements(fold.lanes::json) as lane (value)
        ));
    end if;
    -- A client is not asked once more what is answered.
    if customs_of is not null and exists (
        select
        from agui.run as next
        where next.thread_key = run.thread_key and next.parent_no = run.run_no and next.status not in ('failed', 'cut_off')
    ) then
        questions := null;
    end if;
    if is_apart or coalesce(outcome, asked_before) is not null then
        earlier := thread || ',"runId":' || to_json(coalesce(asking, parent, run.run_id));
    else
        earlier := null;
    end if;

    if pieces is null then
        history := concat_ws(
            ',',
            agui_internal.clearing_event(fold.message_ids, fold.roles),
            '{"type":"MESSAGES_SNAPSHOT","messages":[' || array_to_string(fold.bodies, ',') || ']}',
            '{"type":"STATE_SNAPSHOT","snapshot":' || fold.state || '}'
        );
    end if;
    events := concat_ws(
        ',',
        '{"type":"RUN_STARTED",' || earlier || '}',
        case when is_apart then history end,
        asked_before,
        '{"type":"RUN_FINISHED",' || earlier || coalesce(outcome, '') || '}',
        '{' || concat_ws(
            ',',
            '"type":"RUN_STARTED"',
            thread,
            '"runId":' || to_json(run.run_id),
            '"parentRunId":' || to_json(parent),
            '"input":{' || thread || ',"runId":' || to_json(run.run_id) || ',"messages":[' || claimed || '],"tools":[],"context":[]}'
        ) || '}',
        case when not is_apart then history end,
        nullif(agui_internal.custom_events(run, until, customs_of), ''),
        case when left_out is null then nullif(opened, '') end,
        questions,
        coalesce(left_out, ending)
    );
    -- A list of messages cannot express that two of them are one message, which later events change
    -- at both places.
    if pieces is null
        and exists (select from unnest(fold.message_nos) as place (no) where place.no is not null group by place.no having count(*) > 1)
        and agui_internal.fold_difference(fold, agui_internal.fold_given(null, events)) is not null
    then
        events := null;
    end if;
end
$function$;

comment on function agui_internal.replay_part is
    'A part of the history of the lineage of a run, up to a seq (null: all of it), as a snapshot: '
    'events (JSON texts, joined by commas), and the number of the next part (null: this is the last '
    'one). A part has part_bytes at most, unless one message or value of the state is larger. The last part starts the run, with the '
    'CUSTOM events of customs_of (agui_internal.custom_events; null: none, and the questions also if '
    'they are answered), what is open, and the end. events is null if a list of messages cannot express the meaning of the lineage.';

create or replace function agui_internal.message_pieces(bodies text[], max_bytes int)
returns int[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- In the select list, so that no copy of the list is made.
    lengths constant int[] := array(select octet_length(message.body) from (select unnest(bodies) as body) as message);
    size    int := 0;
    pieces  int[] := '{}';
begin
    for position in 1 .. cardinality(lengths) loop
        if size > 0 and size + lengths[position] > max_bytes then
            pieces := pieces || (position - 1);
            size := 0;
        end if;
        size := size + lengths[position] + 1;
    end loop;
    return pieces || cardinality(lengths);
end
$$;

comment on function agui_internal.message_pieces is
    'Cuts a list of messages into pieces of max_bytes at most, unless one message is larger: the '
    'position of the last message of each piece.';

create or replace function agui_internal.messages_part(fold agui_internal.fold, first int, last int, run_ids text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    begins   constant text := '{"type":"RUN_STARTED",' || run_ids;
    finished constant text := '{"type":"RUN_FINISHED",' || run_ids || '}';
begin
    if first = 1 then
        return concat_ws(
            ',',
            begins || '}',
            agui_internal.clearing_event(fold.message_ids[1:last], fold.roles[1:last]),
            '{"type":"MESSAGES_SNAPSHOT","messages":[' || (
                select coalesce(string_agg(message.body, ',' order by message.position), '')
                from unnest(fold.bodies[1:last]) with ordinality as message (body, position)
                where agui_internal.fits_message(message.body)
            ) || ']}',
            finished
        );
    end if;
    return (
        with message as materialized (
            select
                place.body,
                first + place.nth - 1 as position,
                repeated.position is not null as is_repeated
            from unnest(fold.bodies[first:last]) with ordinality as place (body, nth)
            left join agui_internal.repeated_messages(fold.message_ids[1:last]) as repeated on repeated.position = first + place.nth - 1
            where agui_internal.fits_message(place.body)
        ),
        -- A run for each stretch of messages without a repeated id, and the results behind it.
        stretch as (
            select
                message.*,
                count(*) filter (where not message.is_repeated and message.is_first) over (order by message.position) as no
            from (
                select message.*, lag(message.is_repeated, 1, true) over (order by message.position) as is_first
                from message
            ) as message
        ),
        written as (
            select
                stretch.no,
                string_agg(stretch.body, ',' order by stretch.position) filter (where not stretch.is_repeated) as listed,
                string_agg(agui_internal.result_event(stretch.body), ',' order by stretch.position) filter (where stretch.is_repeated) as results
            from stretch
            group by stretch.no
        )
        select string_agg(concat_ws(
            ',',
            begins || coalesce(',"input":{' || run_ids || ',"messages":[' || written.listed || '],"tools":[],"context":[]}', '') || '}',
            written.results,
            finished
        ), ',' order by written.no)
        from written
    );
end
$$;

comment on function agui_internal.messages_part is
    'The events that give a client the messages of a fold from one position to another, behind those '
    'before them: a run or several (JSON texts, joined by commas; null: no client takes any of them). '
    'run_ids: the members threadId and runId.';

create or replace function agui_internal.clearing_event(message_ids text[], roles text[])
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return case
    when exists (
        select from unnest(message_ids) as place (id) where place.id is not null group by place.id having count(*) > 1
    ) then
        '{"type":"MESSAGES_SNAPSHOT","messages":[' || concat_ws(
            ',',
            case when 'reasoning' = any (roles) then '{"id":"cleared","role":"reasoning","content":""}' end,
            case when 'activity' = any (roles) then '{"id":"cleared too","role":"activity","activityType":"cleared","content":{}}' end
        ) || '],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}}'
end;

comment on function agui_internal.clearing_event is
    'The list that clears what a client has before a list of messages with these ids and roles; null: '
    'none is needed. A client replaces all of its messages with an id in a list by the one in the list, '
    'so ids that repeat (frameworks give the result of a tool the id of the call) need one. It names a '
    'message of each role that an older client keeps when the list has none.';

create or replace function agui_internal.state_events(state text, max_bytes int, out events text[], out too_large text)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    guarded    constant json := agui_internal.json_guard(state)::json;
    -- Room for the rest of the event.
    room       constant int := max_bytes - 64;
    operation  text;
    operations text[] := '{}';
    size       int := 0;
begin
    if octet_length(state) <= max_bytes or json_typeof(guarded) not in ('object', 'array') then
        operation := '{"type":"STATE_SNAPSHOT","snapshot":' || state || '}';
        if octet_length(state) <= max_bytes or agui_internal.fits_frame(operation) then
            events := array[operation];
        else
            events := array['{"type":"STATE_SNAPSHOT","snapshot":null}'];
            too_large := '';
        end if;
        return;
    end if;
    events := array['{"type":"STATE_SNAPSHOT","snapshot":' || case json_typeof(guarded) when 'object' then '{}' else '[]' end || '}'];
    for operation in
        select '{"op":"add","path":' || agui_internal.json_unguard(to_json(part.path)::text)
            || ',"value":' || agui_internal.json_unguard(part.value) || '}'
        from agui_internal.state_places('', guarded, room) as part
    loop
        if octet_length(operation) > max_bytes and not agui_internal.fits_frame('{"type":"STATE_DELTA","delta":[' || operation || ']}') then
            too_large := coalesce(too_large, agui_internal.json_guard(operation)::json ->> 'path');
            continue;
        end if;
        if size > 0 and size + octet_length(operation) > room then
            events := events || ('{"type":"STATE_DELTA","delta":[' || array_to_string(operations, ',') || ']}');
            operations := '{}';
            size := 0;
        end if;
        operations := operations || operation;
        size := size + octet_length(operation) + 1;
    end loop;
    if size > 0 then
        events := events || ('{"type":"STATE_DELTA","delta":[' || array_to_string(operations, ',') || ']}');
    end if;
end
$$;

comment on function agui_internal.state_events is
    'Events that give a client a state, each of max_bytes at most if it can be: one STATE_SNAPSHOT, or '
    'an empty one and the patches that fill it. A single value that is larger has an event of its own. '
    'too_large: the first value that no client takes (a JSON pointer), which is left out; null: none.';

create or replace function agui_internal.state_places(within text, document json, max_bytes int)
returns table (path text, value text)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    kind   constant text := json_typeof(document);
    member record;
begin
    for member in
        select within || '/' || replace(replace(field.key, '~', '~0'), '/', '~1') as path, field.value
        from json_each(case when kind = 'object' then document end) as field
        union all
        select within || '/' || element.position - 1, element.value
        from json_array_elements(case when kind = 'array' then document end) with ordinality as element (value, position)
    loop
        path := member.path;
        if octet_length(member.value::text) + octet_length(member.path) <= max_bytes
            or json_typeof(member.value) not in ('object', 'array')
        then
            value := member.value::text;
            return next;
        else
            value := case json_typeof(member.value) when 'object' then '{}' else '[]' end;
            return next;
            return query select place.path, place.value from agui_internal.state_places(member.path, member.value, max_bytes) as place;
        end if;
    end loop;
end
$$;

comment on function agui_internal.state_places is
    'The places of a document (guarded JSON, an object or a list at the path within) to fill in turn: its members, and in place of a '
    'member that has more than max_bytes an empty one and its own members. path: a JSON pointer.';

create or replace function agui_internal.too_large_failure(fold agui_internal.fold, sent_as_list int, state_path text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    message record;
begin
    select place.id, octet_length(place.body) as bytes, count(*) over () as number,
        not agui_internal.fits_message(place.body) as is_large
    into message
    from unnest(fold.message_ids, fold.bodies) with ordinality as place (id, body, position)
    left join agui_internal.repeated_messages(fold.message_ids) as repeated on repeated.position = place.position
    where not agui_internal.fits_message(place.body)
        -- As a case expression, so that the planner does not read each message before it joins.
        or case when repeated.position > sent_as_list then agui_internal.result_event(place.body) is null end
    order by place.position
    limit 1;
    if found and message.is_large then
        return '{"type":"RUN_ERROR","code":"MESSAGE_TOO_LARGE","message":' || to_json(format(
            'the message "%s" has %s bytes, more than a client takes in one event (10 MiB)%s: all others were sent; '
            'read it with agui.messages or GET /threads/{thread}/messages',
            message.id, message.bytes, case when message.number > 1 then format(', as have %s others', message.number - 1) else '' end
        )) || '}';
    elsif found then
        return '{"type":"RUN_ERROR","code":"MESSAGE_NOT_SENT","message":' || to_json(format(
            'the message "%s" has the id of an earlier one, so it cannot be sent in a part of this history: '
            'read it with agui.messages or GET /threads/{thread}/messages',
            message.id
        )) || '}';
    elsif state_path is not null then
        return '{"type":"RUN_ERROR","code":"STATE_TOO_LARGE","message":' || to_json(format(
            'the value at "%s" of the state is larger than a client takes in one event (10 MiB): the rest was sent; '
            'read it with agui.state or GET /threads/{thread}/state',
            state_path
        )) || '}';
    end if;
    return null;
end
$$;

comment on function agui_internal.too_large_failure is
    'The RUN_ERROR that names what of a fold cannot be sent to a client in parts: the first message, or '
    'the value of the state at a path; null: all can. The first sent_as_list messages come as a list, which '
    'may repeat ids.';

create or replace function agui_internal.fits_message(body text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
-- The ids of the thread and of a run come with it, twice.
return octet_length(body) <= 8388608 or agui_internal.fits_frame(body || repeat(' ', 8192));

comment on function agui_internal.fits_message is
    'Whether a message is small enough for every client, in an event of its own.';

create or replace function agui_internal.fits_frame(event text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return case
    -- No text has more units than bytes, and none has fewer units than characters.
    when octet_length(event) <= agui_internal.frame_limit() then true
    when length(event) > agui_internal.frame_limit() then false
    else length(event) + regexp_count(event, '[\U00010000-\U0010FFFF]') <= agui_internal.frame_limit()
end;

comment on function agui_internal.fits_frame is
    'Whether an event is small enough for every client (agui_internal.frame_limit).';

create or replace function agui_internal.frame_limit()
returns int
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return 10485760 - 1024;

comment on function agui_internal.frame_limit is
    'The size of the largest event that every client takes, in units of UTF-16: @ag-ui/client 1.0.0 '
    'gives up on a frame of more than 10 MiB, and a frame holds a little more than its event.';

create or replace function agui_internal.repeated_messages(message_ids text[])
returns table ("position" bigint)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
    select place.position
    from (
        select message.id, message.position, row_number() over (partition by message.id order by message.position) as nth
        from unnest(message_ids) with ordinality as message (id, position)
    ) as place
    where place.id is not null and place.nth > 1;
end;

comment on function agui_internal.repeated_messages is
    'The positions of the messages whose id an earlier one has.';

create or replace function agui_internal.result_event(body text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return agui_internal.json_unguard((
    select '{"type":"TOOL_CALL_RESULT","messageId":' || (guarded -> 'id')::text
        || ',"toolCallId":' || (guarded -> 'toolCallId')::text
        || ',"content":' || (guarded -> 'content')::text
        || coalesce(',"role":' || (guarded -> 'role')::text, '')
        || coalesce(',"subagentRunId":' || (guarded -> 'subagentRunId')::text, '')
        || coalesce(',"metadata":' || (guarded -> 'metadata')::text, '')
        || '}'
    from agui_internal.json_guarded(body::json) as guarded
    where guarded ->> 'role' = 'tool'
        and not exists (
            select
            from json_object_keys(guarded) as member (name)
            where member.name <> all (array['id', 'role', 'toolCallId', 'content', 'subagentRunId', 'metadata'])
        )
));

comment on function agui_internal.result_event is
    'The TOOL_CALL_RESULT that makes a message; null: none does.';

create or replace function agui_internal.reopening_events(run agui.run, until bigint, fold agui_internal.fold)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        with part as materialized (
            select
                part.opens,
                part.named_by,
                part.name,
                part.opened_at,
                part.event,
                agui_internal.json_string_text(to_json(part.name)::text) as id,
                part.opens = any (agui_internal.event_types('start text', 'start reasoning', 'start tool')) as is_content,
                part.opens = any (agui_internal.event_types('start tool')) as is_call
            from (
                -- What is open of thinking opens as the reasoning that it means.
                select
                    coalesce(meant.type, open.opens) as opens,
                    case when meant.type is null then open.named_by else 'messageId' end as named_by,
                    case when meant.type is null then open.name else run.run_id || '-thinking-' || open.opened_at end as name,
                    open.opened_at,
                    case when meant.type is null then open.event else agui_internal.json_guarded(
                        agui_internal.event_of_reasoning(
                            agui_internal.json_unguard(open.event::text)::json, meant.type,
                            to_json(run.run_id || '-thinking-' || open.opened_at)::text
                        )::json
                    ) end as event
                from agui_internal.open_parts(run, until) as open
                cross join lateral (
                    select case
                        when open.opens = any (agui_internal.event_types('start thinking')) then (agui_internal.event_types('start reasoning'))[1]
                        when open.opens = any (agui_internal.event_types('start thinking span')) then (agui_internal.event_types('start span'))[1]
                    end as type
                ) as meant
            ) as part
        ),
        lane as (
            select
                agui_internal.json_string_text((lane.value -> 'id')::text) as id,
                lane.value ->> 'kind' = 'tool' as is_call
            from json_array_elements(agui_internal.json_guard(fold.lanes)::json) as lane (value)
        ),
        call as (
            select distinct on (id) agui_internal.json_string_text(call.call_id) as id, call.name
            from agui_internal.fold_calls(fold) as call
            where exists (select from part where part.is_call) or exists (select from lane where lane.is_call)
            order by id, call.message_position, call.position
        ),
        opening as (
            select
                part.opened_at,
                case
                    when part.is_call then call.id is not null
                    when part.is_content then array_position(fold.message_ids, part.id) is not null
                    else true
                end as is_known,
                -- The start of an existing message or call changes nothing if it has no metadata
                -- and the same name.
                agui_internal.json_unguard(case
                    when part.is_content then '{' || concat_ws(
                        ',',
                        '"type":"' || part.opens || '"',
                        '"' || part.named_by || '":' || to_json(part.name),
                        case
                            when part.is_call then '"toolCallName":' || coalesce(call.name, (part.event -> 'toolCallName')::text, '""')
                            else '"role":' || (part.event -> 'role')::text
                        end,
                        '"subagentRunId":' || nullif((part.event -> 'subagentRunId')::text, 'null')
                    ) || '}'
                    else part.event::text
                end) as event
            from part
            left join call on part.is_call and call.id = part.id
        )
        select concat_ws(',', string_agg(opening.event, ',' order by opening.opened_at), agui_internal.compact_lanes(fold))
        from opening
        having bool_and(opening.is_known) is not false  -- null: no part is open
            and not exists (
                select from lane
                where lane.is_call and not exists (select from call where call.id = lane.id)
            )
    );
end
$function$;

comment on function agui_internal.reopening_events is
    'The events (JSON texts, joined by commas) that reopen what a run has open at a seq, for a '
    'reader who has the fold of its lineage at that point; empty: nothing is open. Null if a '
    'message or tool call is open that was removed, because its start would create it.';

-- The verifier of a client assigns a message to the agent that began it in the current run, and
-- forgets that when a run starts. So a replay that starts the run states this for messages of
-- subagents. For a message that a client already has, the input has no other effect.
create or replace function agui_internal.claimed_messages(run agui.run, until bigint, fold agui_internal.fold)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        with tagged as materialized (
            select place.id, place.role, agui_internal.json_string_text(place.owner) as owner, place.owner as owner_token, place.position
            from (
                select
                    message.id,
                    message.role,
                    message.position,
                    (agui_internal.json_guarded(message.body::json) -> 'subagentRunId')::text as owner
                from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality as message (id, role, body, position)
                where message.id is not null and strpos(message.body, 'subagentRunId') > 0
            ) as place
            where place.owner ^@ '"'
        ),
        event as (
            select element.*
            from (
                select stored.first_seq, agui_internal.json_guarded(stored.events) as events
                from agui.batch as stored
                where exists (select from tagged)
                    and stored.thread_key = run.thread_key
                    and stored.run_no = run.run_no
                    and stored.first_seq between run.first_seq and coalesce(until, 9223372036854775807)
                    and strpos(stored.events::text, 'subagentRunId') > 0
                offset 0
            ) as batch
            cross join lateral rows from (
                json_to_recordset(batch.events) as ("messageId" json, "subagentRunId" json, messages json)
            ) with ordinality as element (message_id, owner, messages, position)
            where batch.first_seq + element.position - 1 <= coalesce(until, 9223372036854775807)
        ),
        claim as (
            select agui_internal.json_string_text(event.message_id::text) as id, agui_internal.json_string_text(event.owner::text) as owner
            from event
            union
            select
                agui_internal.json_string_text((listed.message -> 'id')::text),
                agui_internal.json_string_text((listed.message -> 'subagentRunId')::text)
            from event
            cross join lateral json_array_elements(case when json_typeof(event.messages) = 'array' then event.messages end) as listed (message)
            where json_typeof(listed.message) = 'object'
        )
        select string_agg(
            agui_internal.json_unguard('{"id":' || to_json(tagged.id) || case tagged.role
                when 'activity' then ',"role":"activity","activityType":"","content":{}'
                when 'reasoning' then ',"role":"reasoning","content":""'
                else ',"role":"assistant"'
            end || ',"subagentRunId":' || tagged.owner_token || '}'),
            ',' order by tagged.position
        )
        from tagged
        join claim on claim.id = tagged.id and claim.owner = tagged.owner
    );
end
$function$;

comment on function agui_internal.claimed_messages is
    'The messages of a fold that a run has assigned to their subagents, up to a seq, for the input '
    'of a RUN_STARTED: messages without content (JSON texts, joined by commas; null: none).';

create or replace function agui_internal.question_events(interrupts text)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if strpos(interrupts, '"source"') = 0 then
        return null;
    end if;
    return (
        select agui_internal.json_unguard(string_agg((interrupt.value -> 'source')::text, ',' order by interrupt.position))
        from json_array_elements(agui_internal.json_guard(interrupts)::json) with ordinality as interrupt (value, position)
        where json_typeof(interrupt.value) = 'object' and agui_internal.is_question(interrupt.value -> 'source')
    );
end
$function$;

comment on function agui_internal.question_events is
    'The questions (JSON texts, joined by commas) of which interrupts were made, as they came; null: the '
    'interrupts are those of an outcome.';

create or replace function agui_internal.custom_events(leaf agui.run, until bigint, of_runs text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    most_events constant int := 100;
    most_bytes  constant int := 1048576;
begin
    if coalesce(of_runs, 'none') = 'none' then
        return null;
    end if;
    return (
        with run as (
            select ancestor.* from agui_internal.ancestors(leaf) as ancestor where of_runs = 'lineage'
            union all
            select leaf.* where of_runs = 'head'
        ),
        custom as (
            select
                batch.first_seq + element.position as place,
                element.payload::text as payload,
                octet_length(element.payload::text) as bytes
            from run
            join agui.batch as batch
                on batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and least(run.last_seq, until)
            cross join lateral json_array_elements(
                case when strpos(batch.events::text, '"CUSTOM"') > 0 then batch.events end
            ) with ordinality as element (payload, position)
            where agui_internal.event_type(element.payload) = 'CUSTOM'
                and (until is null or batch.first_seq + element.position - 1 <= until)
                -- agui_internal.replay_part asks what is open.
                and not agui_internal.is_question(agui_internal.json_guarded(element.payload))
        ),
        counted as (
            select
                custom.*,
                row_number() over newest <= most_events and sum(custom.bytes) over newest <= most_bytes as is_kept
            from custom
            window newest as (order by custom.place desc)
        )
        select concat_ws(
            ',',
            case when count(*) filter (where not counted.is_kept) > 0 then
                '{"type":"CUSTOM","name":"pgagui.left_out","value":{"customEvents":' || count(*) filter (where not counted.is_kept) || '}}'
            end,
            string_agg(counted.payload, ',' order by counted.place) filter (where counted.is_kept)
        )
        from counted
    );
end
$$;

comment on function agui_internal.custom_events is
    'The CUSTOM events of a run up to a seq (null: all), for a client that reloads: JSON texts, joined '
    'by commas; null or empty: none. of_runs: none, head (that run) or lineage (with its ancestors). '
    'The last 100 in 1 MiB at most; a CUSTOM event pgagui.left_out before them counts those left out. '
    'Questions are not among them.';

create or replace function agui_internal.lineage_events(thread_id text, leaf agui.run, after_seq bigint, until bigint, with_inputs boolean)
returns json
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    inputs  agui_internal.input_place[];
    -- The runs that get a RUN_STARTED: those that begin with another event, unless they continue a
    -- chunk stream of their parent, which it would end. Only the fold shows whether there is one.
    bare_no int[];
    -- The events of thinking, if there are any, as those of reasoning that they mean.
    thought_seqs  bigint[];
    thought_types text[];
    thought_ids   text[];
    events json;
begin
    if with_inputs then
        select array_agg(ancestor.run_no) into bare_no
        from agui_internal.ancestors(leaf) as ancestor
        join agui.batch as first
            on first.thread_key = ancestor.thread_key and first.first_seq = ancestor.first_seq
        cross join lateral (
            select element.payload from json_array_elements(first.events) as element (payload) limit 1
        ) as beginning
        left join agui.run as parent
            on parent.thread_key = ancestor.thread_key and parent.run_no = ancestor.parent_no
        -- As a case expression, so that the planner cannot fold what the earlier conditions
        -- exclude.
        where case
            when agui_internal.event_type(beginning.payload) = 'RUN_STARTED' then false
            when parent.run_no is null then true
            else coalesce((agui_internal.state_at(parent, null)).lanes = agui_internal.failed_lanes(), true)
        end;

        select array_agg(place) into inputs
        from (
            select
                array_agg(ancestor.run_no) as run_nos,
                array_agg(coalesce(least(ancestor.last_seq, until), 9223372036854775807)) as through_seqs
            from agui_internal.ancestors(leaf) as ancestor
        ) as lineage
        cross join lateral agui_internal.input_places(leaf.thread_key, lineage.run_nos, lineage.through_seqs) as place;
    end if;

    loop
        select ('[' || coalesce(string_agg(
            case
                -- Before the first event of a run that has no RUN_STARTED.
                when not place.is_start
                then '{"type":"RUN_STARTED","threadId":' || to_json(thread_id) || ',"runId":' || to_json(ancestor.run_id)
                    || ',"input":' || given.input || '},'
                when with_inputs
                    and batch.first_seq + element.position - 1 = ancestor.first_seq
                    and ancestor.run_no = any (bare_no)
                then '{"type":"RUN_STARTED","threadId":' || to_json(thread_id) || ',"runId":' || to_json(ancestor.run_id) || '},'
                else ''
            end || case
                when thought.seq is not null then agui_internal.event_of_reasoning(element.payload, thought.type, thought.id)
                when place.is_start then agui_internal.json_unguard(agui_internal.json_member_set(
                    agui_internal.json_guard(element.payload::text), 'input', agui_internal.json_guard(given.input::text)
                ))
                else element.payload::text
            end,
            ',' order by batch.first_seq, element.position
        ), '') || ']')::json
        into events
        from agui_internal.ancestors(leaf, after_seq) as ancestor
        join agui_internal.batches_behind(leaf.thread_key, after_seq) as batch
            on batch.run_no = ancestor.run_no
                and batch.first_seq between ancestor.first_seq and coalesce(least(ancestor.last_seq, until), 9223372036854775807)
        cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
        left join unnest(inputs) as place
            on place.seq = batch.first_seq + element.position - 1
        left join unnest(thought_seqs, thought_types, thought_ids) as thought (seq, type, id)
            on thought.seq = batch.first_seq + element.position - 1
        left join agui.input as given
            on given.thread_key = leaf.thread_key and given.run_no = place.run_no
        where batch.first_seq + element.position - 1 > after_seq
            and (until is null or batch.first_seq + element.position - 1 <= until);
        exit when thought_seqs is not null
            or strpos(events::text, 'THINKING') = 0 and strpos(events::text, '\u00') = 0;
        select
            coalesce(array_agg(thought.seq), '{}'), array_agg(thought.type), array_agg(thought.id)
        into thought_seqs, thought_types, thought_ids
        from agui_internal.ancestors(leaf, after_seq) as ancestor
        cross join lateral agui_internal.thoughts(leaf.thread_key, ancestor.run_no, until) as thought;
        exit when thought_seqs = '{}';
    end loop;
    return events;
end
$$;

comment on function agui_internal.lineage_events is
    'The events of the lineage of a run after after_seq, up to a seq (null: all), as a JSON array. '
    'with_inputs inserts the inputs stored beside the events into RUN_STARTED, and a RUN_STARTED '
    'before runs that begin with another event, unless that would end a chunk stream. Events of '
    'thinking come as the events of reasoning that they mean.';

create or replace function agui_internal.thoughts(
    in  thread_key uuid,
    in  run_no int,
    in  until bigint,
    out seq  bigint,
    out type text,
    out id   text
)
returns setof record
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
as $function$
declare
    run_id constant text := agui_internal.run_of_events(thread_key, run_no, null, null);
    event  record;
    meant  record;
    opened text[];
begin
    for event in
        select batch.first_seq + element.position - 1 as seq, element.type, agui_internal.json_string_token(element.message_id::text) as id
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui.batch as stored
            where stored.thread_key = thoughts.thread_key
            and stored.run_no = thoughts.run_no
            and stored.first_seq <= coalesce(until, 9223372036854775807)
            and (stored.events::text ~ 'THINKING|-thinking-|"RUN_' or strpos(stored.events::text, '\u00') > 0)
            offset 0
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events) as (type text, "messageId" json)
        ) with ordinality as element (type, message_id, position)
        order by 1
    loop
        meant := agui_internal.thinking_as_reasoning(event.type, opened, event.id, run_id, event.seq);
        opened := meant.opened;
        if meant.type <> event.type then
            seq := event.seq;
            type := meant.type;
            id := meant.id;
            return next;
        end if;
    end loop;
end
$function$;

comment on function agui_internal.thoughts is
    'The events of thinking of a run, up to a seq (null: all), as the events of reasoning that they '
    'mean: the type, and the id as a JSON string of guarded text.';
