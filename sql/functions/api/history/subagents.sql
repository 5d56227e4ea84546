create or replace function agui.subagents(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    lineage   boolean default true,
    scope     text default ''
)
returns setof agui.subagent
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
-- The planner expects few subagents, and would compare each with each where there are many.
set enable_nestloop = off
set jit = off
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := coalesce(agui_internal.seq_at(leaf.thread_key, at_seq, at_time), 9223372036854775807);
begin
    return query
    with ancestor as materialized (
        select * from agui_internal.ancestors(leaf, case when lineage is false then leaf.first_seq else 0 end)
    ),
    event as materialized (
        select
            batch.first_seq + element.position - 1 as seq,
            batch.run_no,
            element.type,
            coalesce(agui_internal.json_timestamp(element.told), agui_internal.event_time(batch.recorded_at, element.earlier_us)) as created_at,
            agui_internal.json_string_text(element.subagent::text) as subagent_run_id,
            element.type = any (agui_internal.event_types('end subagent')) as is_end,
            case when element.type = any (agui_internal.event_types('start subagent', 'end subagent')) then element.payload end as payload
        from (
            select stored.*, agui_internal.json_guarded(stored.events) as guarded
            from ancestor
            cross join lateral (
                select *
                from agui.batch as of_run
                where of_run.thread_key = leaf.thread_key
                    and of_run.run_no = ancestor.run_no
                    and of_run.first_seq between ancestor.first_seq and least(coalesce(ancestor.last_seq, until), until)
                    -- Skip batches that name no subagent. A name written with escapes has \u00 in it.
                    and (strpos(of_run.events::text, 'subagentRunId') > 0 or strpos(of_run.events::text, '\u00') > 0)
                offset 0  -- one range of the index for each run
            ) as stored
            offset 0  -- so that a batch is guarded once, not once for each function that reads it
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.guarded) as (type text, "subagentRunId" json, "timestamp" json),
            json_array_elements(batch.guarded),
            unnest(batch.earlier_us)
        ) with ordinality as element (type, subagent, told, payload, earlier_us, position)
        where json_typeof(element.subagent) = 'string'
            and batch.first_seq + element.position - 1 <= until
    ),
    segment as (
        select
            event.subagent_run_id,
            event.run_no,
            count(*) as event_count,
            min(event.seq) as first_seq,
            max(event.seq) as last_seq,
            max(event.seq) filter (where event.type = any (agui_internal.event_types('start subagent'))) as start_seq,
            max(event.seq) filter (where event.is_end) as end_seq,
            (array_agg(event.payload order by event.seq) filter (where event.type = any (agui_internal.event_types('start subagent'))))[1] as start,
            (array_agg(event.payload order by event.seq desc) filter (where event.is_end))[1] as ending,
            (array_agg(event.created_at order by event.seq desc) filter (where event.is_end))[1] as ended_at,
            (array_agg(event.created_at order by event.seq))[1] as started_at,
            max(event.created_at) - min(event.created_at) as duration
        from event
        group by event.subagent_run_id, event.run_no
    ),
    -- Runs of a lineage follow one another, and so do the segments.
    subagent as materialized (
        select
            row_number() over (order by min(segment.first_seq))::int as node,
            segment.subagent_run_id,
            min(segment.run_no) as first_run_no,
            max(segment.run_no) as last_run_no,
            max(segment.run_no) filter (where segment.end_seq is not null) as end_run_no,
            sum(segment.event_count)::bigint as event_count,
            min(segment.first_seq) as first_seq,
            max(segment.last_seq) as last_seq,
            max(segment.start_seq) as start_seq,
            max(segment.end_seq) as end_seq,
            (array_agg(segment.start order by segment.run_no) filter (where segment.start is not null))[1] as start,
            (array_agg(segment.ending order by segment.run_no desc) filter (where segment.ending is not null))[1] as ending,
            (array_agg(segment.ended_at order by segment.run_no desc) filter (where segment.end_seq is not null))[1] as ended_at,
            (array_agg(segment.started_at order by segment.run_no))[1] as started_at,
            sum(segment.duration) as duration
        from segment
        group by segment.subagent_run_id
    ),
    start as materialized (
        select
            subagent.node,
            agui_internal.json_string_text(member.name::text) as name,
            agui_internal.json_string_text(member.description::text) as description,
            agui_internal.json_string_text(member."parentSubagentRunId"::text) as parent_subagent_run_id,
            agui_internal.json_string_text(member."parentToolCallId"::text) as parent_tool_call_id,
            agui_internal.json_string_text(member."parentMessageId"::text) as parent_message_id
        from subagent
        cross join lateral json_to_record(subagent.start) as member (
            name json, description json, "parentSubagentRunId" json, "parentToolCallId" json, "parentMessageId" json
        )
    ),
    tree as (
        select *
        from agui_internal.preorder((
            -- A parent must have begun before, so that parents that name each other make no circle.
            select array_agg(coalesce(parent.node, 0) order by subagent.node)
            from subagent
            join start on start.node = subagent.node
            left join subagent as parent
                on parent.subagent_run_id = start.parent_subagent_run_id and parent.node < subagent.node
        ))
    )
    select
        tree.depth,
        subagent.subagent_run_id,
        start.name,
        start.description,
        start.parent_subagent_run_id,
        start.parent_tool_call_id,
        start.parent_message_id,
        progress.status,
        first_run.run_id,
        last_run.run_id,
        subagent.first_seq,
        subagent.last_seq,
        subagent.event_count,
        subagent.started_at,
        case progress.status when 'running' then null when 'cut_off' then last_run.ended_at else subagent.ended_at end,
        subagent.duration,
        case when progress.status = 'finished' then agui_internal.json_unguard(nullif(closing.result::text, 'null'))::json end,
        case when progress.status = 'suspended' then closing.interrupt_ids end,
        case when progress.status = 'failed' then agui_internal.json_string_text(closing.message::text) end,
        case when progress.status = 'failed' then agui_internal.json_string_text(closing.code::text) end,
        case
            when progress.status not in ('running', 'cut_off') and json_typeof(closing.usage) = 'array' then agui_internal.json_unguard(closing.usage::text)::json
        end
    from subagent
    join tree on tree.node = subagent.node
    join start on start.node = subagent.node
    join ancestor as first_run on first_run.run_no = subagent.first_run_no
    join ancestor as last_run on last_run.run_no = subagent.last_run_no
    left join lateral (
        select
            member.result,
            member.message,
            member.code,
            member.usage,
            member.type = 'SUBAGENT_ERROR' as is_failure,
            outcome.value ->> 'type' = 'suspended' as is_suspension,
            (
                select array_agg(agui_internal.json_string_text(item.value::text) order by item.position)
                from json_array_elements(case when json_typeof(outcome.value -> 'interruptIds') = 'array' then outcome.value -> 'interruptIds' end)
                    with ordinality as item (value, position)
                where json_typeof(item.value) = 'string'
            ) as interrupt_ids
        from json_to_record(subagent.ending) as member (type text, result json, message json, code json, usage json, outcome json)
        cross join lateral (
            select case when json_typeof(member.outcome) = 'object' and member.type = 'SUBAGENT_FINISHED' then member.outcome end as value
        ) as outcome
    ) as closing on true
    cross join lateral (
        select
            subagent.end_seq is null
            or subagent.start_seq > subagent.end_seq
            -- A later run continues a subagent that was suspended, with SUBAGENT_STARTED or without.
            or closing.is_suspension and subagent.last_run_no > subagent.end_run_no as is_open
    ) as stage
    cross join lateral (
        select case
            when stage.is_open and last_run.last_seq <= until then 'cut_off'
            when stage.is_open then 'running'
            when closing.is_failure then 'failed'
            when closing.is_suspension then 'suspended'
            else 'finished'
        end as status
    ) as progress
    order by tree.place;
end
$function$;

comment on function agui.subagents(text, text, bigint, timestamptz, boolean, text) is
    'Returns the subagents of the lineage of a run (null: the head) as they were after the run or, '
    'for a point in the past, after event at_seq or at at_time, whichever is earlier. lineage => '
    'false: only those of the run itself. One row for each subagentRunId, in the order of a tree: '
    'each subagent before those that it began, which have the next depth. A subagent whose parent '
    'is unknown, or began later, has depth 1. Parses only those batches of the log that name '
    'subagents. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.subagents(text, text, bigint, timestamptz, boolean, text) from public;
