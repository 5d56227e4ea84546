create or replace function agui.lag(exact boolean default false)
returns agui.lag_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- The indexes have the order of the queues. The planner would prefer to sort the whole table.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    -- How many runs of a queue are counted; null: all.
    most_rows constant bigint := case when exact then null else 100000 end;
    own       record;
    is_all    boolean;
    queue     record;
    lag       agui.lag_row;
begin
    select * into own from agui_internal.monitored_keys();
    is_all := coalesce(own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff', false);

    select count(*) filter (where waiting.is_counted) as runs, min(waiting.ended_at) filter (where waiting.is_counted) as since, count(*) as looked
    into queue
    from (
        select run.ended_at, is_all or run.thread_key >= own.low and run.thread_key <= own.high as is_counted
        from agui.run as run
        where run.log_bytes is null and run.status <> 'running'
        order by run.ended_at
        limit most_rows
    ) as waiting;
    lag.runs_to_compact := queue.runs;
    lag.compaction_lag := now() - queue.since;
    lag.is_exact := (queue.looked = most_rows) is not true;

    select count(*) filter (where waiting.is_counted) as runs, min(waiting.ended_at) filter (where waiting.is_counted) as since, count(*) as looked
    into queue
    from (
        select run.ended_at, is_all or run.thread_key >= own.low and run.thread_key <= own.high as is_counted
        from agui.run as run
        where run.repacked_at is null and run.status <> 'running' and run.ended_at <= now() - agui_internal.repack_after()
        order by run.ended_at
        limit most_rows
    ) as waiting;
    lag.runs_to_repack := queue.runs;
    lag.repack_lag := now() - queue.since;
    lag.is_exact := lag.is_exact and (queue.looked = most_rows) is not true;

    select
        count(*),
        count(*) filter (
            where greatest(last.seen_at, agui_internal.reachable_since())
                + agui_internal.lease_of(run.has_heartbeat, run.seen_at, last.seen_at) < now()
        ),
        now() - min(last.seen_at)
    into lag.running_runs, lag.stale_runs, lag.oldest_sign_of_life
    from agui.run as run
    cross join lateral (select agui_internal.last_seen_at(run) as seen_at offset 0) as last
    where run.status = 'running' and run.thread_key >= own.low and run.thread_key <= own.high;

    select count(*)
    into lag.quarantined_runs
    from agui_internal.job_note as note
    where note.run_no > 0 and (note.error is not null or note.attempts > 1)
        and note.thread_key >= own.low and note.thread_key <= own.high;
    return lag;
end
$$;

comment on function agui.lag(boolean) is
    'The backlog of the jobs and the age of runs in progress, in one row (agui.lag_row). Reads the '
    'queues of the jobs and the last batch of each run in progress. Meant for monitoring: it shows '
    'only counts and ages, and pg_monitor may call it. It counts the first 100,000 runs of a queue; '
    'if there are more, is_exact is false and the counts are lower bounds. Ages are exact, as are '
    'the figures of runs in progress. exact => true counts whole queues. While row-level security '
    'is on, roles other than pg_monitor and operators get the values of their scope, of a long '
    'queue those among its first 100,000 runs.';

revoke execute on function agui.lag(boolean) from public;
