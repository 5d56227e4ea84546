create or replace function agui.waiting(max_rows int default 100, agent text default null, scope text default null)
returns setof agui.interrupt_fact
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- Indexes have the order of the list. As in agui.thread_page.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    own        record;
    scope_part text;  -- the keys of all threads of a scope begin with it; null: all scopes
begin
    select * into own from agui_internal.own_keys_in(waiting.scope);
    if own.low is null then
        return;  -- before an index is read
    end if;
    if agui_internal.scope_key(own.low) = agui_internal.scope_key(own.high) then
        scope_part := left(own.low::text, 18);
    end if;
    return query
    select
        thread.scope, thread.thread_id, run.run_id, activity.agent, (listed.asked).interrupt_id, (listed.asked).reason, (listed.asked).message,
        (listed.asked).tool_call_id, listed.asked_at, (listed.asked).expires_at, 'waiting', null::text, null::timestamptz, listed.thread_key, listed.run_no,
        case when (listed.asked).is_call then 'call' else 'interrupt' end, agui_internal.tool_of_call(listed.asked), (listed.asked).arguments
    from (
        -- A condition on the variable alone skips an index.
        (
            select interrupt as asked, interrupt.asked_at, interrupt.thread_key, interrupt.run_no
            from agui.projected_interrupt as interrupt
            where scope_part is null and interrupt.is_open is not false
                and interrupt.thread_key >= own.low and interrupt.thread_key <= own.high
            order by interrupt.asked_at, interrupt.thread_key, interrupt.run_no
        )
        union all
        (
            select interrupt, interrupt.asked_at, interrupt.thread_key, interrupt.run_no
            from agui.projected_interrupt as interrupt
            where left(interrupt.thread_key::text, 18) collate "C" = scope_part and interrupt.is_open is not false
                and interrupt.thread_key >= own.low and interrupt.thread_key <= own.high
            order by interrupt.asked_at, interrupt.thread_key, interrupt.run_no
        )
        order by asked_at, thread_key, run_no
    ) as listed
    cross join lateral (
        select state.status
        from agui_internal.interrupt_state(listed.asked) as state
        offset 0
    ) as state
    cross join lateral (
        select stored.scope, stored.thread_id
        from agui.thread as stored
        where stored.thread_key = listed.thread_key
        offset 0
    ) as thread
    cross join lateral (
        select stored.run_id
        from agui.run as stored
        where stored.thread_key = listed.thread_key and stored.run_no = listed.run_no
        offset 0
    ) as run
    left join lateral (
        select stored.agent
        from agui.thread_activity as stored
        where stored.thread_key = listed.thread_key
        offset 0
    ) as activity on true
    where state.status = 'waiting'
        and (waiting.scope is null or thread.scope = waiting.scope)
        and (waiting.agent is null or activity.agent = waiting.agent)
    order by listed.asked_at, listed.thread_key, listed.run_no
    limit max_rows;
end
$$;

comment on function agui.waiting(int, text, text) is
    'Returns the interrupts that wait for an answer, of all conversations, those asked first first: a '
    'row for each (agui.interrupt_fact). They are those that a restore of the head has. While a run with the '
    'answer is in progress, they do not wait; if it fails, they do again. Tool calls without a result wait, too (kind call), '
    'if their run finished longer ago than the setting call_delay: until the conversation has the result. '
    'agent, scope: only those of an agent or a scope (null: all that the role sees). As of the last '
    'call of agui.project(). A page reads the interrupts that it shows, and those of other agents.';

revoke execute on function agui.waiting(int, text, text) from public;
