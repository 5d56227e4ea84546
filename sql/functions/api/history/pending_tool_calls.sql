create or replace function agui.pending_tool_calls(thread_id text, run_id text default null, scope text default '')
returns text[]
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run   agui.run := agui_internal.find_run(thread_id, run_id, scope);
    named text[];
begin
    if run.status <> 'finished' then
        return '{}';
    end if;

    select array_agg(agui_internal.json_string_text(call.id::text) order by call.position)
    into named
    from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
    cross join lateral (
        select (agui_internal.json_guarded(batch.events) -> (run.end_seq - batch.first_seq)::int) -> 'outcome' as outcome
        offset 0
    ) as ending
    cross join lateral json_array_elements(case
        when ending.outcome ->> 'type' = 'success' and json_typeof(ending.outcome -> 'pendingToolCallIds') = 'array'
            then ending.outcome -> 'pendingToolCallIds'
        else '[]'
    end) with ordinality as call (id, position)
    where json_typeof(call.id) = 'string';
    if named is not null then
        return named;
    end if;

    return agui_internal.unanswered_calls(run);
end
$$;

comment on function agui.pending_tool_calls(text, text, text) is
    'Returns the ids of the tool calls that a run (null: the head) has left for the application to '
    'answer, as the official client computes them: those that the outcome of its RUN_FINISHED '
    'names (pendingToolCallIds), or else those that it began and gave no result. Only a run with '
    'the status finished has any. Reads the events of the run if the outcome names none. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.pending_tool_calls(text, text, text) from public;
