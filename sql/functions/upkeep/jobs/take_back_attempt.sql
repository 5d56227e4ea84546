create or replace function agui_internal.take_back_attempt(job text, thread_key uuid, run_nos int[])
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.own_key(take_back_attempt.thread_key);
    delete from agui_internal.job_note as note
    where note.job = take_back_attempt.job
        and note.thread_key = take_back_attempt.thread_key
        and note.run_no = any (run_nos)
        and note.attempts <= 1;
    update agui_internal.job_note as note
    set attempts = note.attempts - 1, next_at = null
    where note.job = take_back_attempt.job
        and note.thread_key = take_back_attempt.thread_key
        and note.run_no = any (run_nos);
$$;

comment on function agui_internal.take_back_attempt(text, uuid, int[]) is
    'Reverts agui_internal.note_attempt if the outcome does not concern the run.';

revoke execute on function agui_internal.take_back_attempt(text, uuid, int[]) from public;
