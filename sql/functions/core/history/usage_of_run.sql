create or replace function agui_internal.usage_of_run(run agui.run, ending json)
returns setof agui_internal.usage_entry
language plpgsql
stable
parallel safe
rows 2
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
as $$
declare
    is_mapped constant boolean := exists (select from agui_internal.usage_mapping);
begin
    -- A run that was cut off did not end by itself.
    if ending is null or run.cut_off_reason is not null then
        return;
    end if;
    if not agui_internal.reports_one_call(ending) then
        return query select * from agui_internal.usage_of_event(ending);
        if found then
            return;
        end if;
    end if;
    return query
    with reported as materialized (
        select
            batch.first_seq + element.position - 1 as seq,
            guarded.event ->> 'type' = 'CUSTOM' as is_custom,
            guarded.event ->> 'type' <> 'CUSTOM' and agui_internal.reports_one_call(guarded.event) as is_of_call,
            entry.*
        from agui.batch as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
        cross join lateral agui_internal.usage_of_event(guarded.event) as entry
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.end_seq
            -- Names written with escapes have \u00 in them.
            and (is_mapped or strpos(batch.events::text, 'usage') > 0 or strpos(batch.events::text, '\u00') > 0)
            -- What stands behind RUN_ERROR has no effect.
            and batch.first_seq + element.position - 1 <= run.end_seq
            and (
                agui_internal.mentions_type(element.value::text, 'CUSTOM')
                or agui_internal.mentions_type(element.value::text, 'RUN_FINISHED')
                or agui_internal.mentions_type(element.value::text, 'RUN_ERROR')
            )
    ),
    last as (
        select reported.seq, reported.is_custom, reported.is_of_call
        from reported
        order by reported.is_custom, reported.seq desc
        limit 1
    )
    select
        row_number() over (order by reported.seq, reported.place)::int,
        reported.provider, reported.model, reported.input_tokens, reported.output_tokens, reported.total_tokens,
        reported.reasoning_tokens, reported.cached_input_tokens, reported.cache_write_input_tokens
    from reported
    join last on reported.seq = last.seq or reported.is_of_call and last.is_of_call;
end
$$;

comment on function agui_internal.usage_of_run(agui.run, json) is
    'The tokens that a run used; ending is its end (agui_internal.end_of_run, guarded; null: it has none). Each end and '
    'each CUSTOM event reports those of the whole run so far, so the last one counts, of the ends if any of them '
    'reports. Ends that report one call of the model add up. Usually reads no more than the end.';

revoke execute on function agui_internal.usage_of_run(agui.run, json) from public;
