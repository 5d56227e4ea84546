create or replace function agui_internal.answers_of_runs(runs agui.run[])
returns setof agui.projected_call
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    list_type constant text := 'MESSAGES_SNAPSHOT';
begin
    return query
    select
        answer.thread_key,
        answer.run_no,
        answer.call_id,
        (answer.last_place + row_number() over (partition by answer.thread_key, answer.run_no order by answer.seq, answer.position))::int,
        null::text,
        null::timestamptz,
        null::boolean,
        null::bigint,
        answer.at,
        octet_length(agui_internal.json_unguard((answer.message -> 'content')::text))::bigint,
        agui_internal.tool_error(answer.message -> 'error', answer.message -> 'content'),
        true
    from (
        select distinct on (run.thread_key, run.run_no, awaited.call_id)
            run.thread_key,
            run.run_no,
            awaited.call_id,
            -- The client may have taken its time.
            least(run.started_at, parent.ended_at) as at,
            message.value as message,
            list.seq,
            message.position,
            (
                select coalesce(max(known.place), 0)
                from agui.projected_call as known
                where known.thread_key = run.thread_key and known.run_no = run.run_no and not known.is_answer
            ) as last_place
        from unnest(runs) as run
        cross join lateral (
            select stored.ended_at
            from agui.run as stored
            where stored.thread_key = run.thread_key and stored.run_no = run.parent_no
            offset 0
        ) as parent
        cross join lateral (
            select array_agg(call.call_id) as call_ids
            from agui.projected_call as call
            where call.thread_key = run.thread_key
                and call.run_no = run.parent_no
                and call.tool is not null
                and call.result_at is null
                and not exists (
                    select
                    from agui.projected_call as own
                    where own.thread_key = run.thread_key and own.run_no = run.run_no and own.call_id = call.call_id and not own.is_answer
                )
        ) as open
        -- Most runs are not read.
        cross join lateral (
            select 0 as seq, agui_internal.input_of_run(run) -> 'messages' as messages
            where open.call_ids is not null
            union all
            select batch.first_seq + element.position - 1, element.event -> 'messages'
            from agui.batch as batch
            cross join lateral (
                select event.position, agui_internal.json_guarded(event.value) as event
                from json_array_elements(batch.events) with ordinality as event (value, position)
                where agui_internal.mentions_type(event.value::text, list_type)
            ) as element
            where open.call_ids is not null
                and batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and run.last_seq
                and agui_internal.mentions_type(batch.events::text, list_type)
                and element.event ->> 'type' = list_type
                and (run.status <> 'failed' or batch.first_seq + element.position - 1 <= run.end_seq)
            offset 0
        ) as list
        cross join lateral json_array_elements(case when json_typeof(list.messages) = 'array' then list.messages end)
            with ordinality as message (value, position)
        cross join lateral (
            select case when json_typeof(message.value) = 'object' then agui_internal.json_string_text((message.value -> 'toolCallId')::text) end as call_id
        ) as awaited
        where awaited.call_id = any (open.call_ids)
        order by run.thread_key, run.run_no, awaited.call_id, list.seq desc, message.position desc
    ) as answer;
end
$$;

comment on function agui_internal.answers_of_runs(agui.run[]) is
    'What agui.projected_call is to say of the answers that the inputs of runs and their lists of messages bring: results of '
    'calls that the run before them left open, because its client makes them; they count from the end of that run. What '
    'agui_internal.facts_of_runs says of the calls must be stored, of that run too.';

revoke execute on function agui_internal.answers_of_runs(agui.run[]) from public;
