create or replace function agui_internal.choose_thread_to_compact(from_at timestamptz, due_by timestamptz, passed_over uuid[])
returns agui_internal.compaction_step
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    own  record;
    step agui_internal.compaction_step;
begin
    select * into own from agui_internal.own_keys();
    -- The conditions are those of agui_internal.choose_to_compact.
    select run.thread_key, '{0}', run.ended_at into step
    from agui.run as run
    join agui.thread as thread on thread.thread_key = run.thread_key
    where run.log_bytes is null
        and run.status <> 'running'
        and run.ended_at >= from_at
        and run.ended_at <= due_by
        and run.thread_key <> all (passed_over)
        and case when agui_internal.has_row_security() then run.thread_key >= own.low and run.thread_key <= own.high else true end
        and not exists (
            select from agui_internal.job_note as note where note.job = 'compact' and note.thread_key = run.thread_key
        )
    order by run.ended_at
    limit 1
    for no key update of thread skip locked;
    if found then
        insert into agui_internal.job_note (job, thread_key, run_no, attempts)
        values ('compact', step.thread_key, 0, 1)
        on conflict on constraint job_note_pkey do nothing;
    end if;
    return step;
end
$$;

comment on function agui_internal.choose_thread_to_compact(timestamptz, timestamptz, uuid[]) is
    'Chooses a thread without notes, from the position from_at in the queue on, and notes it, as '
    'agui_internal.choose_to_compact does with whole_threads. Nulls: there is none. A job that does '
    'a thread at a time spends a quarter of the time of the server on choosing with that one.';

revoke execute on function agui_internal.choose_thread_to_compact(timestamptz, timestamptz, uuid[]) from public;
