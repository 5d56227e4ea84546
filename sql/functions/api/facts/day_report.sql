create or replace function agui.day_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (day date, threads bigint, runs bigint, failed bigint, events numeric, bytes numeric)
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
    select * into own from agui_internal.own_keys_in(day_report.scope);
    return query
    select
        run.started_at::date,
        count(distinct run.thread_key),
        count(*),
        count(*) filter (where run.status in ('failed', 'cut_off')),
        coalesce(sum(run.events), 0),
        coalesce(sum(run.bytes), 0)
    from agui.run_fact as run
    where run.thread_key >= own.low and run.thread_key <= own.high
        and (day_report.since is null or run.started_at >= day_report.since)
        and (day_report.until is null or run.started_at < day_report.until)
        and (day_report.scope is null or run.scope = day_report.scope)
    group by 1
    order by 1;
end
$$;

comment on function agui.day_report(timestamptz, timestamptz, text) is
    'Returns the days, in the time zone of the session, on which runs began from a time on (null: '
    'always) and before another (null: until now): in how many threads, how many runs, how many of '
    'them failed or were cut off, their events, and the bytes of the text of these. scope: only of a '
    'scope (null: all that the role sees). As of the last call of agui.project().';

revoke execute on function agui.day_report(timestamptz, timestamptz, text) from public;
