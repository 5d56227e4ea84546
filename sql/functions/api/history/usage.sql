create or replace function agui.usage(
    thread_id    text,
    run_id       text default null,
    lineage      boolean default true,
    whole_thread boolean default false,
    scope        text default ''
)
returns setof agui.model_usage
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    if whole_thread and (run_id is not null or lineage is false) then
        raise exception using
            errcode = '22023',
            message = format('usage of thread "%s": whole_thread reads all runs, so it takes neither run_id nor lineage => false', thread_id);
    end if;
    return query
    with counted as materialized (
        select source.run
        from (
            select ancestor as run
            from agui_internal.ancestors(leaf, case when lineage is false then leaf.first_seq else 0 end) as ancestor
            where whole_thread is not true
            union all
            select every_run
            from agui.run as every_run
            where whole_thread and every_run.thread_key = leaf.thread_key
        ) as source
    ),
    reported as (
        select (counted.run).run_no, entry.*
        from counted
        cross join lateral agui_internal.end_of_run(counted.run) as ending
        cross join lateral agui_internal.usage_of_run(counted.run, ending.event) as entry
    ),
    by_model as (
        select
            reported.provider,
            reported.model,
            sum(reported.input_tokens) as input,
            sum(reported.output_tokens) as output,
            sum(reported.total_tokens) as total,
            sum(reported.reasoning_tokens) as reasoning,
            sum(reported.cached_input_tokens) as cached,
            sum(reported.cache_write_input_tokens) as cache_write,
            count(distinct reported.run_no) as runs
        from reported
        group by reported.provider, reported.model
    ),
    all_of as (
        select
            (select count(*) from counted) as runs,
            (select count(distinct reported.run_no) from reported) as runs_with_usage
    )
    select
        by_model.provider,
        by_model.model,
        agui_internal.saturated(by_model.input),
        agui_internal.saturated(by_model.output),
        agui_internal.saturated(by_model.total),
        agui_internal.saturated(by_model.reasoning),
        agui_internal.saturated(by_model.cached),
        agui_internal.saturated(by_model.cache_write),
        coalesce(by_model.runs, 0),
        all_of.runs,
        all_of.runs - all_of.runs_with_usage
    from all_of
    left join by_model on true
    order by by_model.provider collate "C", by_model.model collate "C";
end
$function$;

comment on function agui.usage(text, text, boolean, boolean, text) is
    'Returns the tokens that the lineage of a run (null: the head) used, a row for each provider '
    'and model, as RUN_FINISHED and RUN_ERROR report them, else CUSTOM events, in the spellings of AG-UI, of '
    'TanStack and of Agent Framework, and where agui.map_usage says; at least one row, of nulls if no run '
    'reported any. lineage => false: only those of the run itself. whole_thread => true: those of '
    'all runs of the thread, on all branches, each run once. The calls of subagents are in the '
    'count of their run, and a run that resumes another reports only its own calls, so nothing is '
    'counted twice. Of a run that has ended the last report counts, because each says what the run used so far; the '
    'ends of TanStack, one for each call of the model, add up. A count that is no whole number from 0 to 2^53 - 1 is left out. Where an '
    'entry has no totalTokens, the sum of inputTokens and outputTokens stands for it. Reads the '
    'ends in the log, and the rest of a run whose end reports nothing. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, 22023 '
    'whole_thread with a run or without the lineage.';

revoke execute on function agui.usage(text, text, boolean, boolean, text) from public;
