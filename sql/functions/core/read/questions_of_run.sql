create or replace function agui_internal.questions_of_run(run agui.run, until bigint)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    asked text[] := '{}';
    event record;
begin
    for event in
        select guarded.event, batch.first_seq + element.position - 1 as seq
        from agui.batch as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and until
            and agui_internal.may_begin_or_end(batch.events)
            and batch.first_seq + element.position - 1 < until
            and agui_internal.may_begin_or_end(element.value)
        order by seq
    loop
        if agui_internal.is_question(event.event) then
            asked := asked || agui_internal.question_interrupt(
                event.event, agui_internal.json_string_token(agui_internal.json_guard(to_json(run.run_id)::text)), cardinality(asked)
            );
        elsif event.event ->> 'type' in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') then
            asked := '{}';
        end if;
    end loop;
    return '[' || array_to_string(asked, ',') || ']';
end
$$;

comment on function agui_internal.questions_of_run(agui.run, bigint) is
    'The interrupts (guarded) that the RUN_FINISHED without an outcome at a seq of a run makes of what the '
    'run has asked before.';

revoke execute on function agui_internal.questions_of_run(agui.run, bigint) from public;
