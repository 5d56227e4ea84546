create or replace function agui_internal.note_interruption()
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    update agui_internal.job_note as note
    set attempts = case when left_behind.is_last and left_behind.runs = 1 then 1 else note.attempts end,
        noted_at = case when left_behind.is_last then clock_timestamp() else note.noted_at end,
        step_no = null
    from (
        select
            of_step.thread_key, of_step.run_no, of_step.step_no = progress.last_value as is_last,
            count(*) over (partition by of_step.step_no) as runs
        from agui_internal.job_note as of_step
        cross join agui_internal.compaction_progress as progress
        where of_step.job = 'compact' and of_step.step_no is not null
    ) as left_behind
    cross join agui_internal.own_keys() as own
    where note.job = 'compact'
        and note.thread_key = left_behind.thread_key and note.run_no = left_behind.run_no
        and note.thread_key between own.low and own.high
$$;

comment on function agui_internal.note_interruption() is
    'Counts an attempt at the run that a killed call of agui.compact had begun last, so that it '
    'comes after those that were chosen together with it. Each of them is then tried alone. A call '
    'does this at its beginning, when it has the lock of the job.';

revoke execute on function agui_internal.note_interruption() from public;
