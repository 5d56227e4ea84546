create or replace function agui_internal.life_cycle(thread_key uuid, run_no int default null)
returns setof agui_internal.life_event
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select event.run_no, event.place, event.seq, event.type, event.status, event.is_late, event.thread_id, event.run_id, event.parent_run_id, event.input
    from (
        select
            batch.run_no,
            (batch.events_before + element.position)::bigint as place,
            batch.first_seq + element.position - 1 as seq,
            named.type,
            is_question,
            agui_internal.status_after(
                named.type,
                guarded.event -> 'outcome',
                max(batch.first_seq + element.position) filter (where is_question) over before
                > coalesce(max(batch.first_seq + element.position) filter (where not is_question) over before, 0)
            ) as status,
            named.type <> 'RUN_STARTED' and coalesce(
                max(batch.first_seq + element.position) filter (where named.type = 'RUN_ERROR') over before
                > coalesce(max(batch.first_seq + element.position) filter (where named.type = 'RUN_STARTED') over before, 0),
                false
            ) as is_late,
            guarded.event ->> 'threadId' as thread_id,
            guarded.event ->> 'runId' as run_id,
            nullif(guarded.event ->> 'parentRunId', '') as parent_run_id,
            case when json_typeof(guarded.event -> 'input') = 'object' then guarded.event -> 'input' end as input
        from (
            -- One scan: of a thread that was just stored the planner has no statistics, and would read the
            -- batches once more for each of them.
            select
                stored.run_no, stored.first_seq, stored.events,
                sum(stored.n) over (partition by stored.run_no order by stored.first_seq) - stored.n as events_before
            from agui.batch as stored
            where stored.thread_key = life_cycle.thread_key and (life_cycle.run_no is null or stored.run_no = life_cycle.run_no)
        ) as batch
        -- agui_internal.verify_batches reports a batch that is not an array.
        cross join lateral json_array_elements(case json_typeof(batch.events) when 'array' then batch.events else '[]' end)
            with ordinality as element (event, position)
        cross join lateral (select agui_internal.json_guarded(element.event)) as guarded (event)
        -- Each reading of a member takes as much memory as the event.
        cross join lateral (select guarded.event ->> 'type' as type offset 0) as named
        cross join lateral (select named.type = any (agui_internal.event_types('ask'))) as asking (is_question)
        where agui_internal.may_begin_or_end(batch.events)
            and agui_internal.may_begin_or_end(element.event)
            and (named.type in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') or is_question and agui_internal.is_question(guarded.event))
        window before as (partition by batch.run_no order by batch.first_seq, element.position rows between unbounded preceding and 1 preceding)
    ) as event
    where not event.is_question;
end
$$;

comment on function agui_internal.life_cycle(uuid, int) is
    'The events in the log of a thread, or of one of its runs, that begin and end runs.';

revoke execute on function agui_internal.life_cycle(uuid, int) from public;
