create or replace function agui.tool_calls(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    scope     text default ''
)
returns setof agui.tool_call
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
    -- If several calls have one id, the first one counts; if a call has several results, the last
    -- one counts.
    with call as (
        select distinct on (call.id) call.*
        from (
            select
                agui_internal.json_string_text(call.call_id) as id,
                agui_internal.json_string_text(call.name) as name,
                agui_internal.json_string_text(call.arguments) as arguments,
                call.message_id,
                call.message_position,
                call.position
            from agui_internal.fold_calls(fold) as call
        ) as call
        order by call.id, call.message_position, call.position
    ),
    result as (
        select distinct on (result.call_id) result.*
        from (
            select
                agui_internal.json_string_text((message.body -> 'toolCallId')::text) as call_id,
                agui_internal.json_unguard((message.body -> 'content')::text)::json as content,
                message.position
            from agui_internal.fold_messages(fold, array['tool']) as message
        ) as result
        order by result.call_id, result.position desc
    ),
    mention as (
        select *
        from agui_internal.event_references(leaf, until, agui_internal.event_types(
            'start tool', 'continue tool', 'end tool', 'chunk tool', 'add result', 'start run', 'list messages'
        )) as mention
        where mention.call_id is not null
    ),
    story as (
        select
            mention.call_id,
            min(mention.seq) filter (where not mention.is_result) as first_seq,
            max(mention.seq) filter (where not mention.is_result and mention.item = 0) as streamed_seq,
            -- Clients send the whole conversation with every run. A message repeated in a list is
            -- not an update.
            coalesce(
                max(mention.seq) filter (where mention.is_result and mention.item = 0),
                min(mention.seq) filter (where mention.is_result)
            ) as result_seq,
            bool_or(mention.type = any (agui_internal.event_types('start tool'))) as has_start,
            bool_or(mention.type = any (agui_internal.event_types('end tool'))) as has_end
        from mention
        group by mention.call_id
    ),
    source_event as (
        select distinct mention.seq, mention.run_id, mention.created_at from mention
    ),
    open_chunk as (
        select agui_internal.json_string_text((lane.value -> 'id')::text) as call_id
        from json_array_elements(agui_internal.json_guard(fold.lanes)::json) as lane (value)
        where lane.value ->> 'kind' = 'tool'
    )
    select
        call.id,
        call.name,
        call.arguments,
        agui_internal.json_or_null(call.arguments),
        result.content,
        call.message_id,
        run.run_id,
        story.first_seq,
        greatest(story.first_seq, story.streamed_seq, case when result.call_id is not null then story.result_seq end),
        begun.created_at,
        case status.name when 'completed' then ended.created_at when 'cut_off' then run.ended_at end,
        status.name
    from call
    left join story on story.call_id = call.id
    left join source_event as begun on begun.seq = story.first_seq
    left join agui.run as run on run.thread_key = leaf.thread_key and run.run_id = begun.run_id
    left join result on result.call_id = call.id
    left join source_event as ended on ended.seq = story.result_seq
    cross join lateral (
        select
            run.last_seq <= coalesce(until, run.last_seq) and story.streamed_seq is not null as run_has_ended,
            story.has_end or not story.has_start and call.id not in (select open_chunk.call_id from open_chunk) as is_complete
    ) as stage
    cross join lateral (
        select case
            when result.call_id is not null then 'completed'
            when stage.run_has_ended and (run.status in ('cancelled', 'failed', 'cut_off') or not stage.is_complete) then 'cut_off'
            when stage.is_complete then 'called'
            else 'streaming'
        end as name
    ) as status
    where coalesce(story.first_seq, 1) > coalesce(tool_calls.after_seq, 0)
    order by story.first_seq, call.message_position, call.position;
end
$function$;

comment on function agui.tool_calls(text, text, bigint, timestamptz, bigint, text) is
    'Returns the tool calls of a conversation as they were after a run (null: the head) or, for a '
    'point in the past, after event at_seq of its lineage or at at_time, whichever is earlier. One '
    'row for each call, in the order in which they began; after_seq restricts the rows to calls '
    'that began after that event. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.tool_calls(text, text, bigint, timestamptz, bigint, text) from public;
