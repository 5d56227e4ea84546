create or replace function agui_internal.calls_of_fold(
    fold      agui_internal.fold,
    leaf      agui.run,
    until     bigint,
    after_seq bigint,
    streamed  boolean default false
)
returns setof agui.tool_call
language plpgsql
stable
rows 100
set search_path = pg_catalog, pg_temp
set jit = off
as $function$
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
        from agui_internal.event_references(
            leaf,
            until,
            agui_internal.event_types('start tool', 'continue tool', 'end tool', 'chunk tool', 'add result')
                || case when not streamed then agui_internal.event_types('start run', 'list messages') end
        ) as mention
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
    left join lateral (
        select * from agui.run as of_call where of_call.thread_key = leaf.thread_key and of_call.run_id = begun.run_id offset 0
    ) as run on true
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
    where coalesce(story.first_seq, 1) > coalesce(calls_of_fold.after_seq, 0)
        and (not calls_of_fold.streamed or story.streamed_seq is not null)
    order by story.first_seq, call.message_position, call.position;
end
$function$;

comment on function agui_internal.calls_of_fold(agui_internal.fold, agui.run, bigint, bigint, boolean) is
    'The tool calls of a fold, with their places in the log of the lineage of leaf up to a seq '
    '(null: all of it), which is read; only those that began after after_seq. streamed: only those '
    'that have events of their own, not those that a list of messages brought.';

revoke execute on function agui_internal.calls_of_fold(agui_internal.fold, agui.run, bigint, bigint, boolean) from public;
