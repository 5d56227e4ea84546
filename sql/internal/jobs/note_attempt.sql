create or replace function agui_internal.note_attempt(job text, thread_key uuid, run_no int)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    insert into agui_internal.job_note as note (job, thread_key, run_no, attempts)
    values (note_attempt.job, note_attempt.thread_key, note_attempt.run_no, 1)
    on conflict on constraint job_note_pkey do update
    set attempts = note.attempts + 1,
        code = null,
        error = null,
        -- This value remains if the process is killed before it records the outcome.
        next_at = agui_internal.back_off(note.attempts + 1),
        noted_at = excluded.noted_at;
end
$$;

comment on function agui_internal.note_attempt(text, uuid, int) is
    'Records that a job is about to begin a run (0: runs of the thread). Commit it before the job '
    'does so.';

revoke execute on function agui_internal.note_attempt(text, uuid, int) from public;
