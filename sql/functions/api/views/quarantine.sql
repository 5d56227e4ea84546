create or replace view agui.quarantine with (security_invoker = true) as
select
    note.job,
    thread.scope,
    thread.thread_id,
    run.run_id,
    note.attempts,
    case when note.speaks_against_run then 'run' else 'interruption' end as cause,
    note.code,
    note.error,
    note.noted_at as failed_at,
    note.next_at as next_attempt_at,
    note.thread_key,
    note.run_no
from agui_internal.job_note as note
left join agui.thread as thread on thread.thread_key = note.thread_key
left join agui.run as run on run.thread_key = note.thread_key and run.run_no = note.run_no
where note.run_no > 0 and (note.error is not null or note.attempts > 1);

comment on view agui.quarantine is
    'The runs that a job failed to process, one row for each job and run. The job retries them '
    'with backoff. Compaction also skips the runs that continue from them. If the cause is the run '
    'itself, reads that would have to fold it fail with UI022; its events can still be read. '
    'agui.retry lets the jobs retry at once.';
comment on column agui.quarantine.job is 'compact, compact_running, reap, repack or split (of inputs).';
comment on column agui.quarantine.scope is 'Scope of the thread.';
comment on column agui.quarantine.thread_id is 'The thread.';
comment on column agui.quarantine.run_id is 'The run.';
comment on column agui.quarantine.attempts is 'Number of attempts, none of which succeeded.';
comment on column agui.quarantine.cause is
    'run: an error speaks against the run itself (a limit, a damaged log). interruption: the job '
    'died or was interrupted at the run (killed, out of memory, out of time), so reads go on.';
comment on column agui.quarantine.code is 'SQLSTATE of the error; null: see error.';
comment on column agui.quarantine.error is
    'The last error that speaks against the run, else that of the last attempt; null if the attempt '
    'ended without an error or is in progress.';
comment on column agui.quarantine.failed_at is
    'Time when the last attempt failed or, without an error, when it began.';
comment on column agui.quarantine.next_attempt_at is
    'Time of the next attempt; null: the next call of the job.';
comment on column agui.quarantine.thread_key is 'Key of the thread.';
comment on column agui.quarantine.run_no is 'Number of the run in its thread.';
