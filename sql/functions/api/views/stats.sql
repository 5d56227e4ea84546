create or replace function agui.stats(exact boolean default false)
returns agui.stats_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    own        record;
    own_erased record;
    is_all     boolean;
    -- The percentage of the pages of a table that is read; null: all of them. The ratios among the
    -- rows read are those of the table, and the planner's estimate gives the number of all rows.
    -- repeatable takes the same pages each time, so that figures do not jump between two calls.
    of_runs     real;
    of_threads  real;
    of_erasures real;
    counted record;
    scale   float8 := 1;
    stats   agui.stats_row;
begin
    select * into own from agui_internal.monitored_keys();
    is_all := coalesce(own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff', false);
    -- A sample of pages says nothing about one scope, whose rows are a range of the primary key.
    if is_all and exact is not true then
        of_runs := agui_internal.sampled_percent('agui.run');
        of_threads := agui_internal.sampled_percent('agui.thread');
        of_erasures := agui_internal.sampled_percent('agui.erasure');
    end if;
    stats.is_exact := coalesce(of_runs, of_threads, of_erasures) is null;

    select
        count(*) as runs,
        count(*) filter (where run.status = 'finished') as finished,
        count(*) filter (where run.status = 'interrupted') as interrupted,
        count(*) filter (where run.status = 'cancelled') as cancelled,
        count(*) filter (where run.status = 'failed') as failed,
        count(*) filter (where run.status = 'cut_off') as cut_off,
        -- A run that is not compacted yet counts as if its events were adjacent. If other runs were
        -- in progress at the same time, the count is slightly too high.
        coalesce(sum(coalesce(run.n, run.last_seq - run.first_seq + 1)), 0) as events,
        coalesce(sum(run.log_bytes), 0) as log_bytes,
        count(*) filter (where run.repacked_at is not null) as repacked
    into counted
    from (
        select stored.status, stored.n, stored.first_seq, stored.last_seq, stored.log_bytes, stored.repacked_at
        from agui.run as stored
        where of_runs is null and stored.thread_key >= own.low and stored.thread_key <= own.high
        union all
        select sampled.status, sampled.n, sampled.first_seq, sampled.last_seq, sampled.log_bytes, sampled.repacked_at
        from agui.run as sampled tablesample system (coalesce(of_runs, 0)) repeatable (1)
        where of_runs is not null
    ) as run;
    if of_runs is not null then
        scale := coalesce(agui_internal.estimated_rows('agui.run') / nullif(counted.runs, 0), 100 / of_runs);
    end if;
    stats.runs := counted.runs * scale;
    stats.finished_runs := counted.finished * scale;
    stats.interrupted_runs := counted.interrupted * scale;
    stats.cancelled_runs := counted.cancelled * scale;
    stats.failed_runs := counted.failed * scale;
    stats.cut_off_runs := counted.cut_off * scale;
    stats.events := counted.events * scale;
    stats.compacted_log_bytes := counted.log_bytes * scale;
    stats.repacked_runs := counted.repacked * scale;

    select count(*)
    into stats.running_runs
    from agui.run as run
    where run.status = 'running' and run.thread_key >= own.low and run.thread_key <= own.high;

    if of_threads is null then
        select count(*)
        into stats.threads
        from agui.thread as thread
        where thread.thread_key >= own.low and thread.thread_key <= own.high;
    else
        stats.threads := coalesce(agui_internal.estimated_rows('agui.thread'), (
            select count(*) * 100 / of_threads
            from agui.thread as thread tablesample system (of_threads) repeatable (1)
        ));
    end if;

    if of_erasures is null then
        select * into own_erased from agui_internal.own_erased_keys();
        select count(*)
        into stats.erased_threads
        from agui.erasure as erasure
        where erasure.allowed_at is null
            and (is_all or erasure.erased_key >= own_erased.low and erasure.erased_key <= own_erased.high);
    else
        select count(*) filter (where erasure.allowed_at is null)
            * coalesce(agui_internal.estimated_rows('agui.erasure') / nullif(count(*), 0), 100 / of_erasures)
        into stats.erased_threads
        from agui.erasure as erasure tablesample system (of_erasures) repeatable (1);
    end if;

    if is_all then
        stats.log_disk_bytes := pg_total_relation_size('agui.batch');
        stats.snapshot_disk_bytes := pg_total_relation_size('agui.snapshot') + pg_total_relation_size('agui.message_version');
        stats.tree_disk_bytes := pg_total_relation_size('agui.thread') + pg_total_relation_size('agui.thread_activity')
            + pg_total_relation_size('agui.run');
        stats.session_disk_bytes := pg_total_relation_size('agui.session_key') + pg_total_relation_size('agui.session_state')
            + pg_total_relation_size('agui.checkpoint') + pg_total_relation_size('agui.checkpoint_write')
            + pg_total_relation_size('agui.channel') + pg_total_relation_size('agui.channel_part')
            + pg_total_relation_size('agui.channel_value');
    end if;
    return stats;
end
$$;

comment on function agui.stats(boolean) is
    'Counts and sizes, in one row (agui.stats_row). Reads nothing of the log. Meant for '
    'monitoring: it shows only counts, and pg_monitor may call it. A table of more than 1,000 pages '
    '(about 50,000 runs) is estimated, from 1,000 of its pages and the statistics of the planner, '
    'so that a call costs the same however large the store is: is_exact is false then. exact => '
    'true counts all rows. While row-level security is on, roles other than pg_monitor and '
    'operators get the counts of their scope, always exact, and no bytes on disk.';

revoke execute on function agui.stats(boolean) from public;
