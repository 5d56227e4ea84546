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

comment on function agui.session_messages(text, text, bigint, timestamptz, bigint, text) is
    'Returns a conversation as the six message types of legacy sessions, the format in use before '
    'AG-UI: user, assistant, tool_use, tool_result, system, error. The conversation is as it was '
    'after a run (null: the head) or, for a point in the past, after event at_seq of its lineage '
    'or at at_time, whichever is earlier. Returns one row for each message, in the order of the '
    'events that brought them; after_seq restricts the rows to messages after that event. An '
    'assistant message with tool calls becomes one row for its text and one for each call. '
    'Reasoning and activities have no type here and are omitted. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.session_messages(text, text, bigint, timestamptz, bigint, text) from public;
