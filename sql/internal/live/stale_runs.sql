create or replace function agui_internal.stale_runs(out thread_key uuid, out run_no int)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select run.thread_key, run.run_no
    from agui.run as run
    where run.status = 'running' and agui_internal.alive_until(run) < clock_timestamp()
    order by run.thread_key, run.run_no
$$;

comment on function agui_internal.stale_runs() is
    'The runs in progress of all scopes that gave no sign of life within their lease: those that agui.reap closes.';

revoke execute on function agui_internal.stale_runs() from public;
