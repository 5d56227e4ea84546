create or replace function agui_internal.note_attempt(job text, thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    insert into agui_internal.job_note as note (job, thread_key, run_no, attempts)
    select note_attempt.job, note_attempt.thread_key, run_no, case when cardinality(run_nos) = 1 then 1 else 0 end
    from unnest(run_nos) as run_no
    on conflict on constraint job_note_pkey do update
    set attempts = note.attempts + 1,
        step_no = null,
        -- What speaks against the run stays until an attempt succeeds.
        code = case when note.speaks_against_run then note.code end,
        error = case when note.speaks_against_run then note.error end,
        -- This value remains if the process is killed before it records the outcome.
        next_at = case when note.attempts > 0 then agui_internal.back_off(note.attempts + 1) end,
        noted_at = excluded.noted_at;
end
$$;

comment on function agui_internal.note_attempt(text, uuid, int[]) is
    'Records that a job is about to begin a run (0: runs of the thread). Several runs that it '
    'processes as one get 0 attempts: if that fails, the job tries each of them alone, and the '
    'attempts at a run count from then on. Commit it before the job does so.';

revoke execute on function agui_internal.note_attempt(text, uuid, int[]) from public;
