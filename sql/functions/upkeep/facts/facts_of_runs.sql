create or replace function agui_internal.facts_of_runs(runs agui.run[], news agui_internal.run_news[] default null)
returns table (
    run_fact       agui.projected_run,
    call_fact      agui.projected_call,
    interrupt_fact agui.projected_interrupt,
    usage_fact     agui.projected_usage
)
language plpgsql
stable
rows 1000
set search_path = pg_catalog, pg_temp
as $$
declare
    tokens      constant text[] := agui_internal.event_types('continue text', 'chunk text');
    token_types constant text := 'TEXT_MESSAGE_C';  -- what they begin with
    starts      constant text[] := agui_internal.event_types('start tool');
    ends        constant text[] := agui_internal.event_types('end tool');
    chunks      constant text[] := agui_internal.event_types('chunk tool');
begin
    return query
    with told as materialized (
        select * from agui_internal.events_of_calls(runs)
    ),
    called as materialized (
        select
            event.thread_key,
            event.run_no,
            event.call_id,
            min(event.seq) as seq,
            min(event.at) filter (where not event.is_result and event.name is not null) as started_at,
            (array_agg(event.name order by event.seq desc) filter (where not event.is_result and event.name is not null))[1] as tool,
            bool_or(event.type = any (ends)) or not bool_or(event.type = any (starts)) as is_complete,
            coalesce(sum(octet_length(event.delta::text) - 2) filter (where not event.is_result), 0) as argument_bytes,
            -- What its events say is what the fold has, unless something else may have changed it.
            bool_or(event.type = any (chunks) or strpos(event.delta::text, '\u') > 0)
                or min(event.seq) filter (where event.type = any (starts)) > min(event.seq) filter (where not event.is_result) as is_odd,
            (array_agg(
                row (event.at, octet_length(agui_internal.json_unguard(event.content::text)), agui_internal.tool_error(event.error, event.content))::agui_internal.tool_result
                order by event.seq desc
            ) filter (where event.is_result))[1] as result
        from told as event
        where event.ending is null and event.has_effect and event.call_id is not null
        group by event.thread_key, event.run_no, event.call_id
    ),
    changed as materialized (
        select told.*
        from agui_internal.news_of_runs((
            select array_agg(run)
            from unnest(runs) as run
            where news is null
                and exists (select from called where called.thread_key = run.thread_key and called.run_no = run.run_no)
                and (
                    exists (select from called where called.thread_key = run.thread_key and called.run_no = run.run_no and called.is_odd)
                    or run.last_seq > run.end_seq
                    or exists (
                        select
                        from agui.batch as batch
                        where batch.thread_key = run.thread_key
                            and batch.run_no = run.run_no
                            and batch.first_seq between run.first_seq and run.last_seq
                            and (
                                agui_internal.mentions_type(batch.events::text, 'MESSAGES_SNAPSHOT')
                                or agui_internal.mentions_type(batch.events::text, 'ACTIVITY')
                            )
                    )
                )
        )) as told
        where told.call_id is not null
        union all
        select told.*
        from unnest(news) as told
        where told.call_id is not null
    ),
    listed_result as (
        select changed.thread_key, changed.run_no, changed.call_id, (array_agg(changed.result order by changed.seq desc))[1] as result
        from changed
        join called on called.thread_key = changed.thread_key and called.run_no = changed.run_no and called.call_id = changed.call_id
        where changed.role is not null and changed.seq > called.seq
        group by changed.thread_key, changed.run_no, changed.call_id
    ),
    -- A call that an earlier run of the lineage began goes on.
    repeated as (
        select distinct called.thread_key, called.run_no, called.call_id
        from called
        cross join lateral (
            select before.run_no
            from agui.projected_call as before
            where before.thread_key = called.thread_key and before.call_id = called.call_id
                and before.run_no < called.run_no and before.tool is not null
            union all
            select other.run_no
            from called as other
            where other.thread_key = called.thread_key and other.call_id = called.call_id
                and other.run_no < called.run_no and other.tool is not null
            offset 0
        ) as earlier
        join unnest(runs) as run on run.thread_key = called.thread_key and run.run_no = called.run_no
        where called.tool is not null
            and earlier.run_no in (select ancestor.run_no from agui_internal.ancestors(run) as ancestor)
    ),
    call as (
        select
            called.thread_key, called.run_no, called.call_id, called.seq, called.started_at, called.is_complete,
            coalesce(called.result, listed_result.result) as result,
            case when called.tool is not null and repeated.call_id is null then coalesce(folded.tool, called.tool) end as tool,
            coalesce(folded.argument_bytes, called.argument_bytes) as argument_bytes
        from called
        left join changed as folded
            on folded.thread_key = called.thread_key and folded.run_no = called.run_no and folded.call_id = called.call_id and folded.role is null
        left join listed_result
            on listed_result.thread_key = called.thread_key and listed_result.run_no = called.run_no and listed_result.call_id = called.call_id
        left join repeated
            on repeated.thread_key = called.thread_key and repeated.run_no = called.run_no and repeated.call_id = called.call_id
    )
    select
        row (run.thread_key, run.run_no, run.changed_in, counted.events, counted.bytes, token.at, why.error_code, why.error_message)::agui.projected_run,
        null::agui.projected_call, null::agui.projected_interrupt, null::agui.projected_usage
    from unnest(runs) as run
    left join lateral (
        select end_of_it.error_code, end_of_it.error_message
        from agui_internal.why_ended(run, 1000) as end_of_it
        where run.status in ('failed', 'cut_off')
        offset 0
    ) as why on true
    cross join lateral (
        -- Brackets and commas do not count: they depend on the batches. So does batch.text_bytes, by some bytes.
        select
            coalesce(sum(batch.n), 0) as events,
            coalesce(sum(octet_length(batch.events::text) - batch.n - 1), 0) as bytes
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.last_seq
        offset 0
    ) as counted
    left join lateral (
        select first.at
        from agui.batch as batch
        cross join lateral (
            select agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at
            from json_array_elements(batch.events) with ordinality as element (value, position)
            where agui_internal.mentions_type(element.value::text, token_types)
                and agui_internal.json_guarded(element.value) ->> 'type' = any (tokens)
            order by element.position
            limit 1
        ) as first
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.last_seq
            and agui_internal.mentions_type(batch.events::text, token_types)
        order by batch.first_seq
        limit 1
    ) as token on true

    union all
    select
        null,
        row (
            call.thread_key,
            call.run_no,
            call.call_id,
            row_number() over (partition by call.thread_key, call.run_no order by call.seq, call.call_id collate "C"),
            call.tool,
            case when call.tool is not null then call.started_at end,
            case when call.tool is not null then call.is_complete end,
            case when call.tool is not null then call.argument_bytes end,
            (call.result).at,
            (call.result).bytes,
            (call.result).error,
            false
        )::agui.projected_call,
        null, null
    from call
    -- Pieces of a call that began in no event have no effect.
    where call.tool is not null or (call.result).at is not null

    union all
    select null, null, asked, null
    from unnest(runs) as run
    cross join lateral agui_internal.last_finish(run) as finish
    cross join lateral agui_internal.interrupts_of_end(run, finish.interrupts, finish.at) as asked
    where run.status in ('interrupted', 'failed', 'cut_off')

    union all
    select
        null, null,
        row (run.thread_key, run.run_no, asked.place, null, null, null, asked.call_id, told.at, null, null, true, null)::agui.projected_interrupt,
        null
    from (
        select call.thread_key, call.run_no, array_agg(call.call_id order by call.seq) as ids, array_agg(call.tool order by call.seq) as tools
        from call
        where call.tool is not null and call.is_complete and (call.result).at is null
        group by call.thread_key, call.run_no
    ) as unanswered
    join unnest(runs) as run on run.thread_key = unanswered.thread_key and run.run_no = unanswered.run_no and run.status = 'finished'
    join told on told.thread_key = run.thread_key and told.run_no = run.run_no and told.ending is not null
    -- If the client has tools, the agent calls the others itself.
    cross join lateral (select agui_internal.tools_of_run(run) as names offset 0) as given
    cross join lateral unnest(unanswered.ids, unanswered.tools) with ordinality as asked (call_id, tool, place)
    where given.names is null or asked.tool = any (given.names)

    union all
    select
        null, null, null,
        row (run.thread_key, run.run_no, entry.*)::agui.projected_usage
    from told
    join unnest(runs) as run on run.thread_key = told.thread_key and run.run_no = told.run_no
    cross join lateral agui_internal.usage_of_run(run, told.ending) as entry
    where told.ending is not null;
end
$$;

comment on function agui_internal.facts_of_runs(agui.run[], agui_internal.run_news[]) is
    'What agui.projected_run, agui.projected_call, agui.projected_interrupt and agui.projected_usage '
    'are to say of runs that have ended, except for the answers in their inputs '
    '(agui_internal.answers_of_runs). Of each row one column is not null.';

revoke execute on function agui_internal.facts_of_runs(agui.run[], agui_internal.run_news[]) from public;
