create or replace function agui_internal.failures_of_run(run agui.run, until bigint)
returns setof agui_internal.tool_failure
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    results  constant text[] := agui_internal.event_types('add result');
    begun_at constant bigint := run.first_seq;
    parent   agui.run;
    open     text[] := '{}';
    failure  agui_internal.tool_failure;
begin
    select stored.* into parent
    from agui.run as stored
    where stored.thread_key = run.thread_key and stored.run_no = run.parent_no;
    -- The client of the run answers the calls that its parent left open.
    if parent.status <> 'running' then
        open := agui_internal.unanswered_calls(parent);
    end if;

    for failure in
        -- The last result of a call counts.
        select result.*
        from (
            select distinct on (told.call_id) told.*
            from (
                select
                    batch.first_seq + element.position - 1 as seq,
                    agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
                    agui_internal.json_string_text(member."toolCallId"::text) as call_id,
                    null::text as tool,
                    agui_internal.tool_error(member.error, member.content) as error
                from agui.batch as batch
                cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
                cross join lateral json_to_record(agui_internal.json_guarded(element.value)) as member (type text, "toolCallId" json, error json, content json)
                where batch.thread_key = run.thread_key
                    and batch.run_no = run.run_no
                    and batch.first_seq between run.first_seq and least(coalesce(run.last_seq, until), until)
                    and batch.first_seq + element.position - 1 <= until
                    -- Few batches and events are parsed.
                    and agui_internal.mentions_type(batch.events::text, 'TOOL_CALL_R')
                    and agui_internal.mentions_type(element.value::text, 'TOOL_CALL_R')
                    and member.type = any (results)
                union all
                select
                    begun_at, run.started_at, awaited.call_id, null,
                    agui_internal.tool_error(message.value -> 'error', message.value -> 'content')
                from json_array_elements(
                    (select case when json_typeof(input.messages) = 'array' then input.messages end
                     from (select case when open <> '{}' then agui_internal.input_of_run(run) -> 'messages' end) as input (messages))
                ) as message (value)
                cross join lateral (
                    select case when json_typeof(message.value) = 'object' then agui_internal.json_string_text((message.value -> 'toolCallId')::text) end as call_id
                ) as awaited
                where awaited.call_id = any (open) and begun_at <= until
            ) as told
            order by told.call_id, told.seq desc
        ) as result
        where result.error is not null
        order by result.seq
    loop
        failure.tool := coalesce(agui_internal.name_of_call(run, failure.call_id), agui_internal.name_of_call(parent, failure.call_id));
        return next failure;
    end loop;
end
$$;

comment on function agui_internal.failures_of_run(agui.run, bigint) is
    'The results of tool calls that are errors, in the events of a run up to a seq and in its input: '
    'of that, the answers to calls that the parent left open. Reads the run and its parent.';

revoke execute on function agui_internal.failures_of_run(agui.run, bigint) from public;
