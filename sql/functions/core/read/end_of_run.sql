create or replace function agui_internal.end_of_run(run agui.run, out event json, out at timestamptz)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    select agui_internal.json_guarded(element.value), agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position])
    into event, at
    from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
    cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
    where element.position = run.end_seq - batch.first_seq + 1;
end
$$;

comment on function agui_internal.end_of_run(agui.run) is
    'The last RUN_FINISHED or RUN_ERROR of a run (guarded), and when it was recorded; nulls: it has none.';

revoke execute on function agui_internal.end_of_run(agui.run) from public;
