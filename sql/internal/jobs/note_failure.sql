create or replace function agui_internal.note_failure(job text, thread_key uuid, run_no int, code text, error text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    if agui_internal.is_fault(coalesce(code, '')) then
        update agui_internal.job_note as note
        set code = note_failure.code,
            error = note_failure.error,
            next_at = agui_internal.back_off(note.attempts),
            noted_at = clock_timestamp()
        where note.job = note_failure.job and note.thread_key = note_failure.thread_key and note.run_no = note_failure.run_no;
        return true;
    end if;
    perform agui_internal.take_back_attempt(job, thread_key, run_no);
    return false;
end
$$;

comment on function agui_internal.note_failure(text, uuid, int, text, text) is
    'Records the failure of an attempt and returns true. If the run is not at fault '
    '(agui_internal.is_fault), removes the attempt.';

revoke execute on function agui_internal.note_failure(text, uuid, int, text, text) from public;
