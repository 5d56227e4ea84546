create or replace function agui.agent_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (
    agent text, runs bigint, running bigint, finished bigint, interrupted bigint, cancelled bigint, failed bigint, cut_off bigint,
    median_duration interval, p95_duration interval, median_first_token interval, p95_first_token interval
)
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(agent_report.scope);
    return query
    select
        run.agent,
        count(*),
        count(*) filter (where run.status = 'running'),
        count(*) filter (where run.status = 'finished'),
        count(*) filter (where run.status = 'interrupted'),
        count(*) filter (where run.status = 'cancelled'),
        count(*) filter (where run.status = 'failed'),
        count(*) filter (where run.status = 'cut_off'),
        percentile_disc(0.5) within group (order by run.duration),
        percentile_disc(0.95) within group (order by run.duration),
        percentile_disc(0.5) within group (order by run.first_token_after),
        percentile_disc(0.95) within group (order by run.first_token_after)
    from agui.run_fact as run
    where run.thread_key >= own.low and run.thread_key <= own.high
        and (agent_report.since is null or run.started_at >= agent_report.since)
        and (agent_report.until is null or run.started_at < agent_report.until)
        and (agent_report.scope is null or run.scope = agent_report.scope)
    group by run.agent
    order by 2 desc, run.agent collate "C";
end
$$;

comment on function agui.agent_report(timestamptz, timestamptz, text) is
    'Returns the agents (null: not set) whose runs began from a time on (null: always) and before '
    'another (null: until now), those with most runs first: the runs by status, and the median and the '
    '95th percentile of how long they took and of how long the first piece of text took. scope: only '
    'of a scope (null: all that the role sees). As of the last call of agui.project().';

revoke execute on function agui.agent_report(timestamptz, timestamptz, text) from public;
