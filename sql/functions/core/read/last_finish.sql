create or replace function agui_internal.last_finish(run agui.run, out event json, out at timestamptz, out interrupts json)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    type constant text := 'RUN_FINISHED';
    seq  bigint := run.end_seq;
begin
    case
        when run.status in ('finished', 'interrupted', 'cancelled') then
            select ending.event, ending.at into event, at from agui_internal.end_of_run(run) as ending;
        when run.status in ('failed', 'cut_off') then
            select told.event, told.at, batch.first_seq + told.position - 1 into event, at, seq
            from agui.batch as batch
            cross join lateral (
                select guarded.event, agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at, element.position
                from json_array_elements(batch.events) with ordinality as element (value, position)
                cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
                where batch.first_seq + element.position - 1 < run.end_seq
                    and agui_internal.mentions_type(element.value::text, type)
                    and guarded.event ->> 'type' = type
            ) as told
            where batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and run.end_seq
                and agui_internal.mentions_type(batch.events::text, type)
            order by batch.first_seq desc, told.position desc
            limit 1;
        else null;
    end case;
    if run.status in ('interrupted', 'failed', 'cut_off') and event is not null then
        interrupts := case
            when coalesce(json_typeof(event -> 'outcome'), 'null') = 'null' then agui_internal.questions_of_run(run, seq)
            when event -> 'outcome' ->> 'type' = 'interrupt' and json_typeof(event -> 'outcome' -> 'interrupts') = 'array'
                then event -> 'outcome' -> 'interrupts'
        end;
        interrupts := case when json_array_length(interrupts) > 0 or json_typeof(event -> 'outcome') = 'object' then interrupts end;
    end if;
end
$$;

comment on function agui_internal.last_finish(agui.run) is
    'The last RUN_FINISHED of a run that has effect, when it was recorded, and the interrupts that it makes (null: none); '
    'JSON is guarded. Nulls: it has none. '
    'A run that failed may have one before its RUN_ERROR.';

revoke execute on function agui_internal.last_finish(agui.run) from public;
