-- Which threads the rules (agui.retention) concern, and what is done to them.
--
--    agui.retention ─► due_actions(thread): what the rules say of it now
--    a plan         ─► due_actions of all threads (threads_due)
--    retain_thread  ─► evaluates them once more under the lock of the thread, then acts
--
-- There is no rule to keep the last checkpoints of a thread, because only its graph says when no other
-- is needed: agui.prune_checkpoints. remove_checkpoints removes all.

-- role: maintainer
create or replace function agui_internal.retain_thread(thread_key uuid, action text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due agui_internal.due_thread;
begin
    perform agui_internal.own_key(thread_key);
    -- A job does not wait for other transactions. Nothing is appended to the thread from here on.
    if not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) then
        raise exception using
            errcode = '55P03',
            message = format('the thread with key %s is locked by %s', thread_key, agui_internal.lock_holders(agui_internal.thread_lock_id(thread_key)));
    end if;
    perform set_config('lock_timeout', '200ms', true);
    perform from agui.thread as thread where thread.thread_key = retain_thread.thread_key for update;

    -- The rule, the hold and the activity as they are now.
    select * into due
    from agui_internal.due_actions(thread_key) as listed
    where listed.action = retain_thread.action;
    if due.thread_key is null or due.kept_because is not null then
        return false;
    end if;

    case action
        when 'archive' then
            update agui.thread_activity as listed set archived = true where listed.thread_key = retain_thread.thread_key;
        when 'remove_checkpoints' then
            perform agui_internal.delete_checkpoints(thread_key);
        when 'erase' then
            return (agui_internal.erase_thread(thread_key, format('retention: no activity for %s', due.older_than), due.older_than)).erased_key is not null;
    end case;
    return true;
end
$$;

comment on function agui_internal.retain_thread is
    'Does an action of agui.retention to a thread, if it is due under the lock of the thread. Returns '
    'whether it did. 55P03: another transaction holds the thread.';

create or replace function agui_internal.threads_due(after uuid default null, max_rows int default 2147483647)
returns setof agui_internal.due_thread
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select due.*
    from (
        -- In order before anything is looked up, so that a page costs what it returns.
        select thread_key
        from agui.thread
        where thread_key > coalesce(threads_due.after, '00000000-0000-0000-0000-000000000000')
            -- Of younger threads no rule can say anything.
            and created_at < now() - (select min(rule.older_than) from agui.retention as rule)
        order by thread_key
        offset 0
    ) as thread
    cross join lateral agui_internal.due_actions(thread.thread_key) as due
    order by thread.thread_key
    -- A page has all actions of its threads.
    fetch first threads_due.max_rows rows with ties
$$;

comment on function agui_internal.threads_due is
    'What the rules of agui.retention say now (agui_internal.due_actions), in the order of the keys '
    'of threads, after the key in the argument after. max_rows belongs in the call: a limit outside '
    'would come after all of them have been found.';

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

comment on function agui_internal.due_actions is
    'What the rules of agui.retention say of a thread now, a row for each action. If it is erased, '
    'the other actions are needless.';
