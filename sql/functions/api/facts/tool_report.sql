create or replace function agui.tool_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (
    tool text, calls bigint, failed bigint, cut_off bigint, waiting bigint, median_duration interval, p95_duration interval, last_error text
)
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(tool_report.scope);
    return query
    select
        call.tool,
        count(*),
        count(*) filter (where call.status = 'failed'),
        count(*) filter (where call.status = 'cut_off'),
        count(*) filter (where call.status = 'called'),
        percentile_disc(0.5) within group (order by call.duration),
        percentile_disc(0.95) within group (order by call.duration),
        (array_agg(call.error order by call.started_at desc) filter (where call.error is not null))[1]
    from agui.tool_fact as call
    where call.thread_key >= own.low and call.thread_key <= own.high
        and (tool_report.since is null or call.started_at >= tool_report.since)
        and (tool_report.until is null or call.started_at < tool_report.until)
        and (tool_report.scope is null or call.scope = tool_report.scope)
    group by call.tool
    order by 3 desc, 2 desc, call.tool collate "C";
end
$$;

comment on function agui.tool_report(timestamptz, timestamptz, text) is
    'Returns the tools that runs called from a time on (null: always) and before another (null: until '
    'now), those with most failures first: calls, how many failed, were cut off, or wait for a result; '
    'the median of the time to the result, the time within which 95 of 100 results came, and the '
    'error of the last call that failed. scope: only of a scope (null: all that the role sees). As of '
    'the last call of agui.project().';

revoke execute on function agui.tool_report(timestamptz, timestamptz, text) from public;
