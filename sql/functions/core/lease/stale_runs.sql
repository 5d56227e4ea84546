create or replace function agui_internal.stale_runs(out thread_key uuid, out run_no int)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select run.thread_key, run.run_no
    from agui.run as run
    left join agui_internal.job_note as note
        on note.job = 'reap' and note.thread_key = run.thread_key and note.run_no = run.run_no
    where run.status = 'running'
        and agui_internal.alive_until(run) < clock_timestamp()
        and (note.next_at is null or note.next_at <= clock_timestamp())
    -- Runs without a failed attempt come first.
    order by coalesce(note.attempts, 0), run.thread_key, run.run_no
$$;

comment on function agui_internal.stale_runs() is
    'The stale runs of all scopes, in the order in which agui.reap closes them. Those with a '
    'failed attempt come last, after their backoff.';

revoke execute on function agui_internal.stale_runs() from public;
