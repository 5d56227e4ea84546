create or replace function agui_internal.note_success(job text, thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    delete from agui_internal.job_note as note
    where note.job = note_success.job and note.thread_key = note_success.thread_key and note.run_no = any (run_nos);
end
$$;

comment on function agui_internal.note_success(text, uuid, int[]) is
    'Deletes the notes of runs, in the transaction that does the work.';

revoke execute on function agui_internal.note_success(text, uuid, int[]) from public;
