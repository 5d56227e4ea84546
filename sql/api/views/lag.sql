create or replace view agui.lag as
-- With the rights of the owner, as agui.stats.
select
    compaction.runs as runs_to_compact,
    now() - compaction.since as compaction_lag,
    repacking.runs as runs_to_repack,
    now() - repacking.since as repack_lag,
    progress.runs as running_runs,
    progress.stale as stale_runs,
    now() - progress.since as oldest_sign_of_life,
    quarantine.runs as quarantined_runs
from (
    select count(*) as runs, min(run.ended_at) as since
    from agui.run as run
    where run.log_bytes is null and run.status <> 'running'
        and (
            not agui_internal.has_row_security()
            or run.thread_key >= (select low from agui_internal.monitored) and run.thread_key <= (select high from agui_internal.monitored)
        )
) as compaction
cross join (
    select count(*) as runs, min(run.ended_at) as since
    from agui.run as run
    where run.repacked_at is null and run.status <> 'running' and run.ended_at <= now() - agui_internal.repack_after()
        and (
            not agui_internal.has_row_security()
            or run.thread_key >= (select low from agui_internal.monitored) and run.thread_key <= (select high from agui_internal.monitored)
        )
) as repacking
cross join (
    select
        count(*) as runs,
        count(*) filter (
            where greatest(last.seen_at, agui_internal.reachable_since())
                + agui_internal.lease_of(run.has_heartbeat, run.seen_at, last.seen_at) < now()
        ) as stale,
        min(last.seen_at) as since
    from agui.run as run
    left join lateral (
        select batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = run.thread_key and batch.run_no = run.run_no
        order by batch.first_seq desc
        limit 1
    ) as latest on true
    cross join lateral (select greatest(run.seen_at, latest.recorded_at) as seen_at offset 0) as last
    where run.status = 'running'
        and (
            not agui_internal.has_row_security()
            or run.thread_key >= (select low from agui_internal.monitored) and run.thread_key <= (select high from agui_internal.monitored)
        )
) as progress
cross join (
    -- The rows of agui.quarantine, which pg_monitor may not read.
    select count(*) as runs
    from agui_internal.job_note as note
    where note.run_no > 0 and (note.error is not null or note.attempts > 1)
        and (
            not agui_internal.has_row_security()
            or note.thread_key >= (select low from agui_internal.monitored) and note.thread_key <= (select high from agui_internal.monitored)
        )
) as quarantine;

comment on view agui.lag is
    'The backlog of the jobs and the age of runs in progress, in one row. Reads the queues of the '
    'jobs and the last batch of each run in progress. Meant for monitoring: it shows only counts '
    'and ages, and pg_monitor may read it. While row-level security is on, roles other than '
    'pg_monitor and operators see the values of their scope.';
comment on column agui.lag.runs_to_compact is 'Ended runs that compaction has not processed yet.';
comment on column agui.lag.compaction_lag is
    'Time since the first of them ended; null if there is none.';
comment on column agui.lag.runs_to_repack is
    'Runs that ended longer ago than agui_internal.repack_after() and are not repacked yet.';
comment on column agui.lag.repack_lag is
    'Time since the first of them ended; null if there is none.';
comment on column agui.lag.running_runs is 'Runs in progress.';
comment on column agui.lag.stale_runs is
    'Runs in progress without a sign of life (a batch, or seen_at) within their lease.';
comment on column agui.lag.oldest_sign_of_life is
    'Longest time since the last sign of life of a run in progress; null if there is none.';
comment on column agui.lag.quarantined_runs is
    'Rows of agui.quarantine: runs that a job failed to process and retries later.';
