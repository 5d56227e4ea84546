create or replace function agui_internal.interrupts_of_runs(keys uuid[], run_nos int[])
returns setof agui.projected_interrupt
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        run.thread_key,
        run.run_no,
        listed.position::int,
        agui_internal.json_string_text((listed.value -> 'id')::text),
        agui_internal.json_string_text((listed.value -> 'reason')::text),
        left(agui_internal.json_string_text((listed.value -> 'message')::text), 1000),
        agui_internal.json_string_text((listed.value -> 'toolCallId')::text),
        ending.at,
        agui_internal.json_timestamp(listed.value -> 'expiresAt')
    from unnest(keys, run_nos) as wanted (thread_key, run_no)
    join agui.run as run
        on run.thread_key = wanted.thread_key and run.run_no = wanted.run_no and run.status = 'interrupted'
    cross join lateral agui_internal.end_of_run(run) as ending
    cross join lateral (select ending.event -> 'outcome' -> 'interrupts' as all_of) as outcome
    cross join lateral json_array_elements(case when json_typeof(outcome.all_of) = 'array' then outcome.all_of end)
        with ordinality as listed (value, position)
    where json_typeof(listed.value) = 'object';
end
$$;

comment on function agui_internal.interrupts_of_runs(uuid[], int[]) is
    'What agui.projected_interrupt is to say of runs.';

revoke execute on function agui_internal.interrupts_of_runs(uuid[], int[]) from public;
