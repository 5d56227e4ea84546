create or replace function agui_internal.has_live_run(thread_key uuid)
returns boolean
language sql
stable
parallel safe
return exists (
    select
    from agui.run as run
    where run.thread_key = has_live_run.thread_key and run.status = 'running' and not agui_internal.is_stale(run)
);

comment on function agui_internal.has_live_run(uuid) is
    'Whether a run of a thread is in progress whose writer is alive.';

revoke execute on function agui_internal.has_live_run(uuid) from public;
