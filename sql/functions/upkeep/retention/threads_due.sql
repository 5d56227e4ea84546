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

comment on function agui_internal.threads_due(uuid, int) is
    'What the rules of agui.retention say now (agui_internal.due_actions), in the order of the keys '
    'of threads, after the key in the argument after. max_rows belongs in the call: a limit outside '
    'would come after all of them have been found.';

revoke execute on function agui_internal.threads_due(uuid, int) from public;
