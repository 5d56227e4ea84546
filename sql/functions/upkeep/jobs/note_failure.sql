create or replace function agui_internal.note_failure(job text, thread_key uuid, code text, error text, run_nos int[])
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    kind constant text := agui_internal.failure_kind(coalesce(code, ''));
begin
    perform agui_internal.own_key(thread_key);
    if kind <> 'circumstance' then
        update agui_internal.job_note as note
        set code = case when kind = 'run' or not note.speaks_against_run then note_failure.code else note.code end,
            error = case when kind = 'run' or not note.speaks_against_run then note_failure.error else note.error end,
            speaks_against_run = note.speaks_against_run or kind = 'run',
            -- 0: it was begun together with others.
            attempts = greatest(note.attempts, 1),
            step_no = null,
            next_at = agui_internal.back_off(greatest(note.attempts, 1)),
            noted_at = clock_timestamp()
        where note.job = note_failure.job
            and note.thread_key = note_failure.thread_key
            -- Of several runs, each is tried alone before one of them is at fault.
            and note.run_no = run_nos[1] and cardinality(run_nos) = 1;
        return true;
    end if;
    perform agui_internal.take_back_attempt(job, thread_key, run_nos);
    return false;
end
$$;

comment on function agui_internal.note_failure(text, uuid, text, text, int[]) is
    'Records the failure of an attempt and returns true; after an attempt at several runs, their '
    'notes stay as they are. If the error is a circumstance (agui_internal.failure_kind), removes '
    'the attempt.';

revoke execute on function agui_internal.note_failure(text, uuid, text, text, int[]) from public;
