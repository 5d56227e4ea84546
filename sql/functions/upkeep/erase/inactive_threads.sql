create or replace function agui_internal.inactive_threads(
    older_than interval,
    scope      text default null,
    after      uuid default null,
    max_rows   int default null
)
returns setof agui_internal.inactive_thread
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select thread.thread_key, thread.scope, thread.thread_id, activity.active_at, coalesce(latest.last_seq, 0)
    from (
        -- In order before anything is looked up, so that a page costs what it returns.
        select *
        from agui.thread
        -- An index condition: with an or, every page would begin at the first thread.
        where thread_key > coalesce(inactive_threads.after, '00000000-0000-0000-0000-000000000000')
        order by thread_key
        offset 0
    ) as thread
    cross join lateral (select agui_internal.last_activity_at(thread.thread_key) offset 0) as activity (active_at)
    left join lateral (
        select batch.first_seq + batch.n - 1 as last_seq
        from agui.batch as batch
        where batch.thread_key = thread.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest on true
    where thread.created_at < now() - older_than
        and activity.active_at < now() - older_than
        and activity.active_at >= agui_internal.earliest_time()  -- else the time is unknown
        and (inactive_threads.scope is null or thread.scope = inactive_threads.scope)
    order by thread.thread_key
    limit inactive_threads.max_rows
$$;

comment on function agui_internal.inactive_threads(interval, text, uuid, int) is
    'The threads that agui.erase_older erases: those of a scope (null: of all scopes) in which '
    'nothing was appended or saved for older_than, in the order of their keys, after the key in '
    'the argument after. max_rows belongs in the call: a limit outside would come after all of them '
    'have been found.';

revoke execute on function agui_internal.inactive_threads(interval, text, uuid, int) from public;
