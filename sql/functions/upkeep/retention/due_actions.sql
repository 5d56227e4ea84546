create or replace function agui_internal.due_actions(thread_key uuid)
returns setof agui_internal.due_thread
language sql
stable
parallel safe
-- A single statement, so that it is inlined.
begin atomic
    select
        due.thread_key, due.scope, due.thread_id, due.action, due.older_than, due.is_all, due.last_news_at,
        coalesce((
            select batch.first_seq + batch.n - 1
            from agui.batch as batch
            where batch.thread_key = due.thread_key
            order by batch.first_seq desc
            limit 1
        ), 0),
        coalesce((select sum(run.log_bytes) from agui.run as run where run.thread_key = due.thread_key), 0)::bigint,
        due.kept_because
    from (
        select
            ripe.*, obstacle.kept_because,
            bool_or(ripe.action = 'erase' and obstacle.kept_because is null) over () as is_erased
        from (
            select thread.thread_key, thread.scope, thread.thread_id, rule.action, rule.older_than, rule.is_all, activity.active_at as last_news_at
            from agui.thread as thread
            cross join lateral (select agui_internal.last_activity_at(thread.thread_key) offset 0) as activity (active_at)
            cross join lateral (
                -- The rule of the scope comes before the one for all scopes.
                select distinct on (kept.action) kept.action, kept.older_than, kept.is_all
                from agui.retention as kept
                where kept.is_all or kept.scope = thread.scope
                order by kept.action, kept.is_all
            ) as rule
            where thread.thread_key = due_actions.thread_key
                and thread.created_at < now() - rule.older_than
                and activity.active_at < now() - rule.older_than
                and activity.active_at >= agui_internal.earliest_time()  -- else the time is unknown
                and case rule.action
                    when 'archive' then exists (
                        select from agui.thread_activity as listed where listed.thread_key = thread.thread_key and not listed.archived
                    )
                    when 'remove_checkpoints' then exists (
                        select from agui.checkpoint as checkpoint where checkpoint.thread_key = thread.thread_key
                    )
                    else true
                end
            offset 0  -- what follows is for the few that are due
        ) as ripe
        cross join lateral (
            select case
                when ripe.action <> 'archive' and exists (select from agui.hold as held where held.thread_key = ripe.thread_key) then 'held'
                when agui_internal.has_live_run(ripe.thread_key) then 'in progress'
            end
            offset 0
        ) as obstacle (kept_because)
    ) as due
    where due.action = 'erase' or not due.is_erased;
end;

comment on function agui_internal.due_actions(uuid) is
    'What the rules of agui.retention say of a thread now, a row for each action. If it is erased, '
    'the other actions are needless.';

revoke execute on function agui_internal.due_actions(uuid) from public;
