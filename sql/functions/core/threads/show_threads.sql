create or replace function agui_internal.show_threads(activities agui.thread_activity[], scope text)
returns setof agui.thread_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    -- Each part is a subquery that cannot be flattened, so that the plan is a few look-ups for each
    -- thread, whatever the planner expects.
    return query
    select
        thread.thread_id,
        coalesce(activity.title, activity.derived_title),
        activity.agent,
        activity.metadata,
        activity.archived,
        thread.created_at,
        activity.active_at,
        head.run_id,
        head.status,
        case head.status when 'running' then agui_internal.is_stale(head.run) else false end,
        coalesce(head.run_no, 0),
        coalesce(head.run_no, 0) - tree.parents,
        agui_internal.thread_cursor(activity.active_at, activity.thread_key),
        (why.ended).error_code,
        (why.ended).error_message,
        (why.ended).stop_reason,
        (why.ended).cut_off_reason
    from unnest(show_threads.activities) as activity
    cross join lateral (
        -- Two scopes may have the same scope_key.
        select stored.*
        from agui.thread as stored
        where stored.thread_key = activity.thread_key and stored.scope = show_threads.scope
        offset 0
    ) as thread
    left join lateral (
        -- The whole row only where it is needed.
        select stored.run_id, stored.run_no, stored.status, case when stored.status not in ('finished', 'interrupted') then stored end as run
        from agui.run as stored
        where stored.thread_key = activity.thread_key
        order by stored.run_no desc
        limit 1
    ) as head on true
    left join lateral (
        select agui_internal.why_ended(head.run, 1000) as ended
        where head.status not in ('running', 'finished', 'interrupted')
        offset 0
    ) as why on true
    cross join lateral (
        -- By run_children, which has nothing else.
        select count(distinct run.parent_no)::int as parents
        from agui.run as run
        where run.thread_key = activity.thread_key and run.parent_no is not null
    ) as tree;
end
$$;

comment on function agui_internal.show_threads(agui.thread_activity[], text) is
    'Converts rows to threads as agui.threads shows them, in the order of the rows; threads of '
    'another scope are left out. Reads the runs of each thread, to count branches.';

revoke execute on function agui_internal.show_threads(agui.thread_activity[], text) from public;
