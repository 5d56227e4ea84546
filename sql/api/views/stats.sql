create or replace view agui.stats as
-- With the rights of the owner, so that pg_monitor can read it. Row-level security does not apply
-- to the owner, so each part filters by the range of keys. While row-level security is off, the
-- planner drops these conditions.
with monitored as (
    select range.low, range.high, range.low = '00000000-0000-0000-0000-000000000000' as is_all
    from agui_internal.monitored as range
),
run as (
    select
        count(*) as runs,
        count(*) filter (where status = 'running') as running_runs,
        count(*) filter (where status = 'finished') as finished_runs,
        count(*) filter (where status = 'failed') as failed_runs,
        -- A run that is not compacted yet counts as if its events were adjacent. If other runs were
        -- in progress at the same time, the count is slightly too high.
        coalesce(sum(coalesce(n, last_seq - first_seq + 1)), 0)::bigint as events,
        coalesce(sum(log_bytes), 0)::bigint as compacted_log_bytes,
        count(*) filter (where repacked_at is not null) as repacked_runs
    from agui.run
    where not agui_internal.has_row_security()
        or run.thread_key >= (select low from monitored) and run.thread_key <= (select high from monitored)
)
select
    (
        select count(*)
        from agui.thread
        where not agui_internal.has_row_security()
            or thread.thread_key >= (select low from monitored) and thread.thread_key <= (select high from monitored)
    ) as threads,
    run.runs,
    run.running_runs,
    run.finished_runs,
    run.failed_runs,
    run.events,
    run.repacked_runs,
    run.compacted_log_bytes,
    case when (select is_all from monitored) then pg_total_relation_size('agui.batch') end as log_disk_bytes,
    case
        when (select is_all from monitored)
            then pg_total_relation_size('agui.snapshot') + pg_total_relation_size('agui.message')
    end as snapshot_disk_bytes,
    case
        when (select is_all from monitored)
            then pg_total_relation_size('agui.thread') + pg_total_relation_size('agui.thread_activity') + pg_total_relation_size('agui.run')
    end as tree_disk_bytes,
    case
        when (select is_all from monitored)
            then pg_total_relation_size('agui.session_key') + pg_total_relation_size('agui.session_state')
                + pg_total_relation_size('agui.checkpoint') + pg_total_relation_size('agui.checkpoint_write')
                + pg_total_relation_size('agui.channel') + pg_total_relation_size('agui.channel_part')
                + pg_total_relation_size('agui.channel_value')
    end as session_disk_bytes,
    (
        select count(*)
        from agui.erasure
        where erasure.allowed_at is null
            and (
                not agui_internal.has_row_security()
                or (select is_all from monitored)
                or erasure.erased_key >= (select own.low from agui_internal.own_erased_keys() as own)
                    and erasure.erased_key <= (select own.high from agui_internal.own_erased_keys() as own)
            )
    ) as erased_threads
from run;

comment on view agui.stats is
    'Counts and sizes, in one row. Reads the runs and threads once and nothing of the log. Meant '
    'for monitoring: it shows only counts, and pg_monitor may read it. While row-level security is '
    'on, roles other than pg_monitor and operators see the counts of their scope and no bytes on '
    'disk.';
comment on column agui.stats.threads is 'Threads.';
comment on column agui.stats.runs is 'Runs.';
comment on column agui.stats.running_runs is 'Runs in progress.';
comment on column agui.stats.finished_runs is 'Runs that ended with RUN_FINISHED.';
comment on column agui.stats.failed_runs is 'Runs that ended with RUN_ERROR.';
comment on column agui.stats.events is 'Events of the runs that have ended.';
comment on column agui.stats.repacked_runs is 'Runs whose batches agui.repack has joined.';
comment on column agui.stats.compacted_log_bytes is
    'Stored size of the batches of the compacted runs, in bytes.';
comment on column agui.stats.log_disk_bytes is
    'Bytes of the log on disk, including its index and rows that wait for vacuum.';
comment on column agui.stats.snapshot_disk_bytes is
    'Bytes of the snapshots and their messages on disk, including indexes and rows that wait for '
    'vacuum.';
comment on column agui.stats.tree_disk_bytes is
    'Bytes of threads and runs on disk, including indexes and rows that wait for vacuum.';
comment on column agui.stats.session_disk_bytes is
    'Bytes of session state and checkpoints on disk, including indexes and rows that wait for '
    'vacuum.';
comment on column agui.stats.erased_threads is 'Erased threads whose erasure was not lifted.';
