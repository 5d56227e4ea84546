create or replace function agui_internal.active_at(thread agui.thread)
returns timestamptz
language sql
stable
parallel safe
return coalesce(
    (
        select greatest(max(run.started_at), max(run.ended_at))
        from agui.run as run
        where run.thread_key = thread.thread_key
    ),
    thread.created_at
);

comment on function agui_internal.active_at(agui.thread) is
    'The correct value of agui.thread_activity.active_at: when a run of the thread last began or '
    'ended; without runs, when the thread was created.';

revoke execute on function agui_internal.active_at(agui.thread) from public;
