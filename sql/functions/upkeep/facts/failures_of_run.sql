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
                    event.seq, event.at, event.call_id, null::text as tool, agui_internal.tool_error(event.error, event.content) as error
                from agui_internal.events_of_calls(array[run], until) as event
                where event.ending is null and event.is_result and event.has_effect
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
