create or replace function agui.waiting(max_rows int default 100, agent text default null, scope text default null)
returns setof agui.interrupt_fact
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- A plan for the range of keys of this call. One for any range would read the whole store for a small scope.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(waiting.scope);
    return query
    select interrupt.*
    from agui.interrupt_fact as interrupt
    where interrupt.thread_key >= own.low and interrupt.thread_key <= own.high
        and interrupt.status = 'waiting'
        and (waiting.scope is null or interrupt.scope = waiting.scope)
        and (waiting.agent is null or interrupt.agent = waiting.agent)
        -- A conversation in which another run was begun does not wait any more.
        and not exists (
            select
            from agui.run as later
            where later.thread_key = interrupt.thread_key and later.run_no > interrupt.run_no
        )
    order by interrupt.asked_at, interrupt.thread_key, interrupt.run_no
    limit max_rows;
end
$$;

comment on function agui.waiting(int, text, text) is
    'Returns the interrupts that wait for an answer, of all conversations, those asked first first: a '
    'row for each (agui.interrupt_fact). A conversation that another run was begun in does not wait. '
    'agent, scope: only those of an agent or a scope (null: all that the role sees). As of the last '
    'call of agui.project().';

revoke execute on function agui.waiting(int, text, text) from public;
