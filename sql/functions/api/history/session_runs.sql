-- A user message begins a run, as its input. The messages up to the next user message are what the
-- run did. An error ends the run.
-- Texts are guarded here (agui_internal.json_guard), except in the events that are returned.
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

comment on function agui.session_runs(text, json, text) is
    'Converts messages of a legacy session, the format in use before AG-UI, to AG-UI runs. '
    'messages is a JSON array, in order, of {event_type (or type), payload, message_id (or id), '
    'created_at}. payload is an object, an object as JSON text, or plain text: {content} for user, '
    'assistant and system, {id, name, input} for tool_use, {tool_use_id, content} for tool_result, '
    '{message, code} for error. A user message begins a run; an error ends one. The run ids are '
    'run_prefix followed by a number. Every event carries the original message unchanged as '
    'rawEvent. To store the runs: select agui.append(thread_id, run.run_id, run.events, after_seq '
    '=> 0) from agui.session_runs(…) as run. '
    'Errors: UI008 invalid messages or arguments.';

revoke execute on function agui.session_runs(text, json, text) from public;
