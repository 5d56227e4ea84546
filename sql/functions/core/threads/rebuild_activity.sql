create or replace function agui_internal.rebuild_activity(thread_key uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into agui.thread_activity (thread_key, scope_key, active_at)
    select thread.thread_key, agui_internal.scope_key(thread.thread_key), agui_internal.active_at(thread)
    from agui.thread as thread
    where thread.thread_key = rebuild_activity.thread_key
    on conflict on constraint thread_activity_pkey do update
    set scope_key = excluded.scope_key,
        active_at = excluded.active_at
$$;

comment on function agui_internal.rebuild_activity(uuid) is
    'Creates the row of a thread in agui.thread_activity, or repairs its derived columns. What '
    'agui.set_thread has set is kept.';

revoke execute on function agui_internal.rebuild_activity(uuid) from public;
