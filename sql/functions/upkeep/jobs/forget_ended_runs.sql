create or replace function agui_internal.forget_ended_runs(job text)
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from agui_internal.job_note as note
    using agui_internal.own_keys() as own
    where note.job = forget_ended_runs.job
        and note.thread_key between own.low and own.high
        and not exists (
            select
            from agui.run as run
            where run.thread_key = note.thread_key and run.run_no = note.run_no and run.status = 'running'
        )
$$;

comment on function agui_internal.forget_ended_runs(text) is
    'Deletes the notes of a job for runs in progress if the run has ended since.';

revoke execute on function agui_internal.forget_ended_runs(text) from public;
