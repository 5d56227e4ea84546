create or replace function agui_internal.life_cycle(thread_key uuid)
returns setof agui_internal.life_event
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with batch_place as (
            select
                batch.first_seq,
                sum(batch.n) over (partition by batch.run_no order by batch.first_seq) - batch.n as events_before
            from agui.batch as batch
            where batch.thread_key = life_cycle.thread_key
        )
        select
            batch.run_no,
            (batch_place.events_before + element.position)::bigint,
            batch.first_seq + element.position - 1,
            guarded.event ->> 'type',
            agui_internal.status_after(guarded.event ->> 'type', guarded.event -> 'outcome'),
            guarded.event ->> 'threadId',
            guarded.event ->> 'runId',
            nullif(guarded.event ->> 'parentRunId', ''),
            case when json_typeof(guarded.event -> 'input') = 'object' then guarded.event -> 'input' end
        from agui.batch as batch
        join batch_place on batch_place.first_seq = batch.first_seq
        -- agui_internal.verify_batches reports a batch that is not an array.
        cross join lateral json_array_elements(case json_typeof(batch.events) when 'array' then batch.events else '[]' end)
            with ordinality as element (event, position)
        cross join lateral (select agui_internal.json_guarded(element.event)) as guarded (event)
        where batch.thread_key = life_cycle.thread_key
            and agui_internal.may_begin_or_end(batch.events)
            and agui_internal.may_begin_or_end(element.event)
            and guarded.event ->> 'type' in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR');
end
$$;

comment on function agui_internal.life_cycle(uuid) is
    'The events in the log of a thread that begin and end runs.';

revoke execute on function agui_internal.life_cycle(uuid) from public;
