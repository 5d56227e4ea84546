create or replace function agui.session_messages(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    scope     text default ''
)
returns setof agui.session_message
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := agui_internal.seq_at(leaf.thread_key, at_seq, at_time);
    fold agui_internal.fold := agui_internal.fold_at(leaf, until);
begin
    return query
    with mention as (
        select *
        from agui_internal.event_references(leaf, until, agui_internal.event_types(
            'start text', 'chunk text', 'start tool', 'chunk tool', 'add result', 'start run', 'list messages', 'fail run'
        ))
    ),
    -- A message begins with the event that names it first. Every result creates a message, whether
    -- or not its id is known, and so does every message without an id.
    origin as (
        select message.key, array_agg(message.seq order by message.seq, message.item) as seqs
        from (
            select '' as key, mention.seq, mention.item
            from mention
            where mention.message_id is null and mention.item > 0 and (mention.is_result or mention.call_id is null)
            union all
            select '=' || mention.message_id, min(mention.seq), 0
            from mention
            where mention.message_id is not null
            group by mention.message_id, case when mention.type = any (agui_internal.event_types('add result')) then mention.seq end
        ) as message
        group by message.key
    ),
    call_origin as (
        select mention.call_id as id, min(mention.seq) as seq
        from mention
        where mention.call_id is not null and not mention.is_result
        group by mention.call_id
    ),
    source_event as (
        select distinct mention.seq, mention.run_id, mention.created_at from mention
    ),
    message as (
        select
            message.*,
            message.body -> 'content' as content,
            coalesce(
                origin.seqs[
                    least(row_number() over (partition by message.message_id order by message.position), cardinality(origin.seqs))
                ],
                made.seq
            ) as seq
        from agui_internal.fold_messages(fold, array['user', 'assistant', 'system', 'developer', 'tool']) as message
        left join origin on origin.key = coalesce('=' || message.message_id, '')
        -- a call whose parent is not an assistant message creates its own message
        left join call_origin as made on made.id = message.message_id
    ),
    entry as (
        select
            message.seq,
            message.position,
            0::bigint as part,
            case message.role when 'tool' then 'tool_result' when 'developer' then 'system' else message.role end as type,
            message.message_id,
            agui_internal.json_unguard('{' || concat_ws(
                ',',
                '"tool_use_id":' || case when message.role = 'tool' then coalesce((message.body -> 'toolCallId')::text, 'null') end,
                '"content":' || coalesce(message.content::text, '""'),
                '"error":' || case when message.role = 'tool' then nullif((message.body -> 'error')::text, 'null') end
            ) || '}')::json as payload
        from message
        where message.role <> 'assistant'
            or message.content::text not in ('""', 'null')
            or json_typeof(message.body -> 'toolCalls') is distinct from 'array'
        union all
        select
            coalesce(call_origin.seq, message.seq),
            call.message_position,
            call.position,
            'tool_use',
            call.message_id,
            agui_internal.json_unguard('{' || concat_ws(
                ',',
                '"id":' || coalesce(call.call_id, 'null'),
                '"name":' || coalesce(call.name, 'null'),
                '"input":' || coalesce(agui_internal.json_guard(agui_internal.json_or_null(agui_internal.json_string_text(call.arguments))::text), call.arguments, 'null')
            ) || '}')::json
        from agui_internal.fold_calls(fold) as call
        join message on message.position = call.message_position
        left join call_origin on call_origin.id = agui_internal.json_string_text(call.call_id)
        union all
        select
            mention.seq,
            null,
            0,
            'error',
            null,
            agui_internal.json_unguard(mention.error)::json
        from mention
        where mention.type = 'RUN_ERROR'
    )
    select entry.seq, entry.type, entry.message_id, source_event.run_id, source_event.created_at, entry.payload
    from entry
    left join source_event on source_event.seq = entry.seq
    where coalesce(entry.seq, 1) > coalesce(session_messages.after_seq, 0)
    order by entry.seq, entry.position, entry.part;
end
$function$;

comment on function agui.session_messages is
    'Returns a conversation as the six message types of legacy sessions, the format in use before '
    'AG-UI: user, assistant, tool_use, tool_result, system, error. The conversation is as it was '
    'after a run (null: the head) or, for a point in the past, after event at_seq of its lineage '
    'or at at_time, whichever is earlier. Returns one row for each message, in the order of the '
    'events that brought them; after_seq restricts the rows to messages after that event. An '
    'assistant message with tool calls becomes one row for its text and one for each call. '
    'Reasoning and activities have no type here and are omitted. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

-- A user message begins a run, as its input. The messages up to the next user message are what the
-- run did. An error ends the run.
-- Texts are guarded here (agui_internal.json_guard), except in the events that are returned.
-- route: any node
create or replace function agui.session_runs(thread_id text, messages json, run_prefix text default 'session-run-')
returns setof agui.session_run
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $function$
declare
    subject  constant text := format('legacy session messages of thread "%s"', thread_id);
    thread   constant text := agui_internal.json_guard(to_json(thread_id)::text);
    run_no   int := 0;
    run_id   text;    -- as JSON; null between two runs
    events   text[];
    has_failed boolean;
    parent   text;    -- the assistant message that owns the tool calls, as JSON
    message  record;
    origin   text;    -- members that every event carries to show where it comes from
    content  text;    -- the content of the message, as JSON
    wording  text;    -- the same as a JSON string
    run      agui.session_run;
begin
    if thread_id is null or thread_id = '' or run_prefix is null then
        raise exception using
            errcode = 'UI008',
            message = 'agui.session_runs: thread_id must not be empty, and run_prefix must not be null';
    end if;
    if messages is null or json_typeof(messages) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: expected a JSON array, got %s', subject, coalesce(json_typeof(messages), 'null'));
    end if;

    for message in
        select
            entry.position,
            entry.type,
            case
                when json_typeof(entry.id) in ('string', 'number') then agui_internal.json_as_string(entry.id)
                else to_json('message-' || entry.position)::text
            end as id,
            json_typeof(entry.id) = 'string' as is_named,
            round(extract(epoch from agui_internal.json_timestamp(entry.created_at)) * 1000) as told,
            entry.value,
            case when json_typeof(payload.value) = 'object' then payload.value else json_build_object('content', payload.value) end as payload
        from (
            select
                element.position,
                guarded.value,
                agui_internal.json_string_text(coalesce(guarded.value -> 'event_type', guarded.value -> 'eventType', guarded.value -> 'type')::text) as type,
                coalesce(guarded.value -> 'message_id', guarded.value -> 'messageId', guarded.value -> 'id') as id,
                coalesce(guarded.value -> 'created_at', guarded.value -> 'createdAt') as created_at,
                guarded.value -> 'payload' as payload
            from json_array_elements(messages) with ordinality as element (value, position)
            cross join lateral (
                select case when json_typeof(element.value) = 'object' then agui_internal.json_guarded(element.value) else '{}' end as value
                offset 0
            ) as guarded
            union all
            select null, null, null, null, null, null  -- the end
        ) as entry
        cross join lateral (
            -- A message is an object, an object as a JSON text, or the content alone.
            select case
                when json_typeof(entry.payload) = 'string' and agui_internal.json_string_text(entry.payload::text) ~ '^\s*\{'
                    then coalesce(agui_internal.json_guarded(agui_internal.json_or_null(agui_internal.json_string_text(entry.payload::text))), entry.payload)
                else coalesce(entry.payload, '""')
            end as value
            offset 0
        ) as payload
        order by entry.position
    loop
        if run_id is not null and (has_failed or message.position is null or message.type = 'user') then
            run.run_id := agui_internal.json_string_text(run_id);
            run.events := agui_internal.json_unguard('[' || array_to_string(
                events || case when not has_failed then concat('{"type":"RUN_FINISHED","threadId":', thread, ',"runId":', run_id, '}') end, ','
            ) || ']');
            return next run;
            run_id := null;
        end if;
        exit when message.position is null;

        if message.type is null or message.type not in ('user', 'assistant', 'tool_use', 'tool_result', 'system', 'error') then
            raise exception using
                errcode = 'UI008',
                message = format('%s: message %s is of type %s, which is unknown', subject, message.position, coalesce('"' || left(message.type, 100) || '"', 'null')),
                hint = 'Set event_type (or type) to user, assistant, tool_use, tool_result, system or error.';
        end if;

        origin := concat(',"timestamp":' || message.told, ',"rawEvent":', message.value);
        content := coalesce(
            nullif(
                case message.type
                    when 'tool_use' then coalesce(message.payload -> 'input', message.payload -> 'arguments', message.payload -> 'args')
                    when 'error' then coalesce(message.payload -> 'message', message.payload -> 'content')
                    else coalesce(message.payload -> 'content', message.payload -> 'text', message.payload -> 'output')
                end::text,
                'null'
            ),
            case message.type when 'tool_use' then '{}' else '""' end
        );
        wording := agui_internal.json_as_string(content::json);

        if run_id is null then
            run_no := run_no + 1;
            run_id := agui_internal.json_guard(to_json(run_prefix || run_no)::text);
            has_failed := false;
            parent := null;
            events := array[concat(
                '{"type":"RUN_STARTED","threadId":', thread, ',"runId":', run_id,
                ',"input":{"threadId":', thread, ',"runId":', run_id, ',"messages":[',
                case
                    when message.type in ('user', 'system')
                        then concat(
                            '{"id":', message.id, ',"role":"', message.type,
                            '","content":', case when left(content, 1) = '[' then content else wording end, '}'
                        )
                end,
                '],"tools":[],"context":[]}',
                case when message.type in ('user', 'system') then origin else ',"timestamp":' || message.told end,
                '}'
            )];
            continue when message.type in ('user', 'system');
        end if;

        -- Translate the content.

        case message.type
            when 'assistant', 'system' then
                events := events || array[
                    concat('{"type":"TEXT_MESSAGE_START","messageId":', message.id, ',"role":"', message.type, '"', origin, '}'),
                    concat('{"type":"TEXT_MESSAGE_CONTENT","messageId":', message.id, ',"delta":', wording, '}'),
                    concat('{"type":"TEXT_MESSAGE_END","messageId":', message.id, '}')
                ];
                parent := case when message.type = 'assistant' then message.id end;

            when 'tool_use' then
                parent := case when message.is_named then message.id else parent end;
                message.id := agui_internal.json_as_string(coalesce(
                    message.payload -> 'id', message.payload -> 'tool_use_id', message.payload -> 'toolCallId', message.id::json
                ));
                events := events || array[
                    concat(
                        '{"type":"TOOL_CALL_START","toolCallId":', message.id, ',"toolCallName":',
                        agui_internal.json_as_string(coalesce(message.payload -> 'name', message.payload -> 'tool_name', '""')),
                        ',"parentMessageId":' || parent, origin, '}'
                    ),
                    concat('{"type":"TOOL_CALL_ARGS","toolCallId":', message.id, ',"delta":', wording, '}'),
                    concat('{"type":"TOOL_CALL_END","toolCallId":', message.id, '}')
                ];

            when 'tool_result' then
                events := array_append(events, concat(
                    '{"type":"TOOL_CALL_RESULT","messageId":', message.id, ',"toolCallId":',
                    agui_internal.json_as_string(coalesce(message.payload -> 'tool_use_id', message.payload -> 'toolCallId', message.payload -> 'id', '""')),
                    ',"role":"tool","content":',
                    case when left(content, 1) = '[' then content else wording end, origin, '}'
                ));
                parent := null;

            when 'error' then
                events := array_append(events, concat(
                    '{"type":"RUN_ERROR","message":', wording,
                    ',"code":' || agui_internal.json_as_string(nullif((message.payload -> 'code')::text, 'null')::json), origin, '}'
                ));
                has_failed := true;
        end case;
    end loop;
end
$function$;

comment on function agui.session_runs is
    'Converts messages of a legacy session, the format in use before AG-UI, to AG-UI runs. '
    'messages is a JSON array, in order, of {event_type (or type), payload, message_id (or id), '
    'created_at}. payload is an object, an object as JSON text, or plain text: {content} for user, '
    'assistant and system, {id, name, input} for tool_use, {tool_use_id, content} for tool_result, '
    '{message, code} for error. A user message begins a run; an error ends one. The run ids are '
    'run_prefix followed by a number. Every event carries the original message unchanged as '
    'rawEvent. To store the runs: select agui.append(thread_id, run.run_id, run.events, after_seq '
    '=> 0) from agui.session_runs(…) as run. '
    'Errors: UI008 invalid messages or arguments.';

create or replace function agui.load_session_state(
    thread_id text,
    key       text,
    run_id    text default null,
    version   bigint default null,
    scope     text default ''
)
returns setof agui.session_document
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    thread uuid := agui_internal.visible_thread_key(scope, thread_id);
    run_no int := agui_internal.session_run_no(thread_id, run_id, scope);
    state  agui.session_state;
begin
    if version is null then
        select * into state from agui_internal.nearest_session_states(thread, run_no, array[key]);
    else
        select * into state
        from agui.session_state as saved
        where saved.thread_key = thread
            and saved.key = load_session_state.key
            and saved.version = load_session_state.version;
    end if;
    if state.document is not null then
        return next agui_internal.show_session_state(state);
    end if;
end
$$;

comment on function agui.load_session_state is
    'Returns the session state document that a run has under a key: the version saved last at the '
    'run, else at its nearest ancestor, else for the thread itself. Without a run: the document of '
    'the thread itself. With version: that version, at whichever run it was saved, as long as it '
    'is kept. Returns no row if there is none. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

-- route: threads
create or replace function agui.load_sessions(thread_ids text[], run_ids text[] default null, scope text default '')
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(thread_ids) <> cardinality(run_ids) then
        raise exception using
            errcode = 'UI008',
            message = 'agui.load_sessions: both arrays must have one item for each thread (null in run_ids: the state of the thread itself)';
    end if;
    return (
        select '[' || coalesce(string_agg(agui.load_session(item.thread_id, item.run_id, scope)::text, ',' order by item.place), '') || ']'
        from unnest(thread_ids, run_ids) with ordinality as item (thread_id, run_id, place)
    )::json;
end
$$;

comment on function agui.load_sessions is
    'Returns the session state (agui.load_session) of several threads as a JSON array, in the '
    'order of the arguments. run_ids names a run for each thread, or null for the state of the '
    'thread itself. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI012 another '
    'thread has the same key.';

create or replace function agui.load_session(thread_id text, run_id text default null, scope text default '')
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Concatenated as text: the documents are already JSON and keep their spelling.
    return (
        select '{"threadId":' || to_json(thread_id)
            || ',"runId":' || coalesce(to_json(run_id)::text, 'null')
            || ',"state":{' || coalesce(string_agg(to_json(state.key) || ':' || state.document, ',' order by state.key collate "C"), '') || '}'
            || ',"versions":{' || coalesce(string_agg(to_json(state.key) || ':' || state.version, ',' order by state.key collate "C"), '') || '}'
            || '}'
        from agui_internal.nearest_session_states(agui_internal.visible_thread_key(scope, thread_id), agui_internal.session_run_no(thread_id, run_id, scope)) as state
        where state.document is not null
    )::json;
end
$$;

comment on function agui.load_session is
    'Returns all session state of a run, or (null) of the thread itself, as one JSON document: '
    '{threadId, runId, state: {key: document, …}, versions: {key: version, …}}. The documents are '
    'unchanged, byte for byte. agui.save_session accepts the result. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

-- role: writer
create or replace function agui.remove_session_state(
    thread_id text,
    key       text,
    run_id    text default null,
    expected_version bigint default 0,
    overwrite boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    thread uuid := agui_internal.own_thread_key(scope, thread_id);
    run_no int := agui_internal.session_run_no(thread_id, run_id, scope);
begin
    perform from agui.session_key as known where known.thread_key = thread and known.key = remove_session_state.key;
    if not found and (overwrite or coalesce(expected_version, 0) = 0) then
        return 0;  -- do not create a thread for this
    end if;
    thread := agui_internal.ensure_writable_thread(thread_id, scope);
    return agui_internal.write_session_state(
        thread, run_no, key, null,
        case when overwrite is not true then coalesce(expected_version, 0) end,
        false, agui_internal.session_subject(thread_id, run_id)
    );
end
$$;

comment on function agui.remove_session_state is
    'Removes a session state document from a run on, or (null) from the thread itself. Earlier '
    'runs keep theirs. Returns the number of the version that records the removal, or 0 if there '
    'was nothing to remove. expected_version and overwrite (remove whatever is there) have the '
    'meaning that they have in agui.save_session_state. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 a limit is '
    'exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 another '
    'version is current, which DETAIL has as {"currentVersion": N}.';

-- role: writer; route: thread
create or replace function agui.save_session(session json, scope text default '')
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return agui.save_sessions(('[' || session || ']')::json, scope) -> 0;
end
$$;

comment on function agui.save_session is
    'Saves session state in the form that agui.load_session returns, {threadId, runId, state, '
    'versions}, in one transaction, and returns the current versions of its keys. Unchanged '
    'documents are not written. With versions, each key is checked as by agui.save_session_state: '
    'a key that versions omits must be new, and a key that versions names but state omits is '
    'removed. Without versions, state replaces what is there. A value of any other form raises '
    'UI008. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 a limit is '
    'exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 another '
    'version is current, which DETAIL has as {"currentVersion": N}.';

-- role: writer; route: one node
create or replace function agui.save_sessions(sessions json, scope text default '')
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 64 * 1024 * 1024;
    given     agui_internal.session_input[];
    saved     text[];
    session   record;
    run_no    int;
    change    record;
    version   bigint;
begin
    perform agui_internal.own_thread_key(scope, '');
    if sessions is null or json_typeof(sessions) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('agui.save_sessions: expected a JSON array of sessions, got %s', coalesce(json_typeof(sessions), 'null'));
    end if;
    if octet_length(sessions::text) > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('agui.save_sessions: the call has %s bytes of session state, more than the limit of %s', octet_length(sessions::text), max_bytes),
            hint = 'Save the sessions in several calls.';
    end if;
    given := array(
        select agui_internal.inspect_session(item.value, item.place)
        from json_array_elements(sessions) with ordinality as item (value, place)
        order by item.place
    );
    saved := array_fill(''::text, array[cardinality(given)]);

    -- Lock the threads in one order, so that two calls cannot deadlock. A session without any
    -- content creates no thread.
    perform
        agui_internal.ensure_writable_thread(item.thread_id, scope),
        agui_internal.wait_for_lock(agui_internal.session_lock_id(item.thread_key), format('the session of thread "%s"', item.thread_id))
    from (
        select distinct requested.thread_id, agui.thread_key(scope, requested.thread_id) as thread_key
        from unnest(given) as requested
        where requested.state::text ~ '"'
            or exists (select from agui.session_key as known where known.thread_key = agui.thread_key(scope, requested.thread_id))
        order by thread_key
        offset 0
    ) as item;

    -- One after the other: the runs that continue from a run inherit what is saved there.
    for session in
        select item.*, agui.thread_key(scope, item.thread_id) as thread_key
        from unnest(given) with ordinality as item (subject, thread_id, run_id, state, versions, place)
        order by thread_key, item.place
    loop
        run_no := agui_internal.session_run_no(session.thread_id, session.run_id, scope);
        for change in
            with document as (
                select member.name as key, member.value as document
                from agui_internal.json_members(session.state) as member
            ),
            known as (
                select member.name as key, member.value::text::bigint as version
                from agui_internal.json_members(session.versions) as member
                union all
                select state.key, null
                from agui_internal.nearest_session_states(session.thread_key, run_no) as state
                where session.versions is null and state.document is not null
            )
            select
                key, document.document,
                case when session.versions is not null then coalesce(known.version, 0) end as version
            from document
            full join known using (key)
            order by key collate "C"
        loop
            version := agui_internal.write_session_state(session.thread_key, run_no, change.key, change.document, change.version, true, session.subject);
            if change.document is not null then
                saved[session.place] := concat_ws(',', nullif(saved[session.place], ''), to_json(change.key) || ':' || version);
            end if;
        end loop;
    end loop;
    return (
        select '[' || coalesce(string_agg('{' || item.versions || '}', ',' order by item.place), '') || ']'
        from unnest(saved) with ordinality as item (versions, place)
    )::json;
end
$$;

comment on function agui.save_sessions is
    'Saves the session state of several threads, a JSON array of what agui.save_session accepts, '
    'in one transaction. Returns an array of the current versions of their keys. Sessions of one '
    'thread are saved in the given order. Concurrent calls for one thread run one after the other. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI011 a limit is '
    'exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 another '
    'version is current, which DETAIL has as {"currentVersion": N}.';

-- role: writer
create or replace function agui.save_session_state(
    thread_id text,
    key       text,
    document  json,
    run_id    text default null,
    expected_version bigint default 0,
    overwrite boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    thread uuid := agui_internal.own_thread_key(scope, thread_id);
    run_no int;
begin
    if document is null then
        raise exception using
            errcode = 'UI008',
            message = format('key "%s" of thread "%s": there is no document to save', key, thread_id),
            hint = 'To remove the document, remove its key. The JSON value null is a document: ''null''.';
    end if;
    thread := agui_internal.ensure_writable_thread(thread_id, scope);
    run_no := agui_internal.session_run_no(thread_id, run_id, scope);
    return agui_internal.write_session_state(
        thread, run_no, key, document,
        case when overwrite is not true then coalesce(expected_version, 0) end,
        false, agui_internal.session_subject(thread_id, run_id)
    );
end
$$;

comment on function agui.save_session_state is
    'Saves a session state document byte for byte and returns its version. The document belongs to '
    'a run and to the runs that continue from it, until one of them saves its own. Without a run '
    'it belongs to the thread itself, and runs see it that have none on their lineage. '
    'expected_version is the version that agui.load_session_state returned for this run (0 or '
    'null: there was none). If another version is current, the call is refused, even if that '
    'version is the result of the same call whose answer was lost: load the document and compare. '
    'overwrite => true saves without this check. The thread does not need to have runs. In a '
    'transaction that also calls agui.append, append first. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 no key or no document, UI011 a limit '
    'is exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI018 '
    'another version is current, which DETAIL has as {"currentVersion": N}.';

create or replace function agui.session_states(
    thread_id  text,
    run_id     text default null,
    scope      text default '',
    after_key  text default null,
    page_bytes int default null
)
returns setof agui.session_document
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
as $$
declare
    state agui.session_state;
    size  int;     -- of a document
    bytes bigint;  -- of the page
begin
    for state in
        select nearest.*
        from agui_internal.nearest_session_states(agui_internal.visible_thread_key(scope, thread_id), agui_internal.session_run_no(thread_id, run_id, scope)) as nearest
        where nearest.document is not null and (after_key is null or nearest.key collate "C" > after_key)
        order by nearest.key collate "C"
    loop
        size := octet_length(state.document::text);
        if bytes + size > page_bytes then
            return next null::agui.session_document;
            return;
        end if;
        bytes := coalesce(bytes, 0) + size;
        return next agui_internal.show_session_state(state);
    end loop;
end
$$;

comment on function agui.session_states is
    'Returns all session state documents of a run, one for each key, in the order of the keys. '
    'Each is what agui.load_session_state returns. Without a run: those of the thread itself. '
    'page_bytes bounds the bytes of the documents (null: no bound), of which there is one at least. '
    'If documents do not fit because of it, a last row of nulls says so: pass the key of the row '
    'before it as after_key. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';

create or replace function agui.session_versions(
    thread_id      text,
    key            text,
    run_id         text default null,
    scope          text default '',
    before_version bigint default null,
    page_bytes     int default null
)
returns setof agui.session_document
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    thread       constant uuid := agui_internal.visible_thread_key(scope, thread_id);
    state_run_no constant int := agui_internal.session_run_no(thread_id, run_id, scope);
    state agui.session_state;
    size  int;     -- of a document
    bytes bigint;  -- of the page
begin
    for state in
        select saved.*
        from agui.session_state as saved
        where saved.thread_key = thread
            and saved.key = session_versions.key
            and saved.run_no = state_run_no
            and saved.version < coalesce(before_version, 9223372036854775807)
        order by saved.version desc
    loop
        size := coalesce(octet_length(state.document::text), 0);
        if bytes + size > page_bytes then
            return next null::agui.session_document;
            return;
        end if;
        bytes := coalesce(bytes, 0) + size;
        return next agui_internal.show_session_state(state);
    end loop;
end
$$;

comment on function agui.session_versions is
    'Returns the stored versions of a session state document at one run, or (null) of the thread '
    'itself, newest first. A null document is a removal. The setting agui.session_versions '
    'determines how many are kept. page_bytes bounds the bytes of the documents (null: no bound), of which '
    'there is one at least. If versions do not fit because of it, a last row of nulls says so: pass the '
    'version of the row before it as before_version. '
    'Errors: UI001 unknown thread, UI002 unknown run (when one is named), UI008 no thread or no '
    'scope, UI012 another thread has the same key.';
