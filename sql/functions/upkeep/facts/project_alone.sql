create or replace function agui_internal.project_alone(thread_key uuid, run_no int)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.project_runs(array[thread_key], array[run_no]);
    perform agui_internal.note_success('project', thread_key, array[run_no]);
exception
    when others then
        insert into agui_internal.job_note as note (job, thread_key, run_no, attempts, code, error, next_at)
        values ('project', thread_key, run_no, 1, sqlstate, sqlerrm, agui_internal.back_off(1))
        on conflict on constraint job_note_pkey do update
        set attempts = note.attempts + 1,
            code = excluded.code,
            error = excluded.error,
            next_at = agui_internal.back_off(note.attempts + 1),
            noted_at = clock_timestamp();
end
$$;

comment on function agui_internal.project_alone(uuid, int) is
    'Projects one run, or notes why that failed and when to retry it.';

revoke execute on function agui_internal.project_alone(uuid, int) from public;
