-- The casts change nothing. Tools that read the definition, such as sqlc, take the column types
-- from them.
-- always: scope, thread_id, run_id, seq, type, recorded_at, payload, thread_key
create or replace view agui.event with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    (batch.first_seq + element.position - 1)::bigint as seq,
    agui_internal.event_type(element.payload)::text as type,
    agui_internal.event_time(batch.recorded_at, element.earlier_us)::timestamptz as recorded_at,
    element.payload::json as payload,
    batch.thread_key
from agui.batch
join agui.thread
    on thread.thread_key = batch.thread_key
cross join lateral (
    -- One look-up for each batch. Under row-level security the planner expects at most one run in a
    -- thread, and would join all runs of the thread with all of its batches.
    select started.run_id
    from agui.run as started
    where started.thread_key = batch.thread_key and started.run_no = batch.run_no
    offset 0
) as run
cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
    as element (payload, earlier_us, position);

comment on view agui.event is
    'The log, one row for each event. To read a thread from a seq on, use agui.events: the view '
    'has to open every batch of the thread.';
comment on column agui.event.seq is
    'Position in the log of the thread: 1, 2, 3, … in commit order.';
comment on column agui.event.type is 'Type of the event, decoded.';
comment on column agui.event.recorded_at is 'Time when the event was appended.';
comment on column agui.event.payload is 'The event, byte for byte.';
comment on column agui.event.thread_key is
    'agui.thread_key(scope, thread_id), the key of the rows of the thread.';

create or replace view agui.held_thread with (security_invoker = true) as
select thread.scope, thread.thread_id, held.reason, held.held_at, held.held_by, held.thread_key
from agui.hold as held
join agui.thread as thread on thread.thread_key = held.thread_key;

comment on view agui.held_thread is 'The threads that are held (agui.set_hold), so that they cannot be erased.';
comment on column agui.held_thread.scope is 'Scope of the thread.';
comment on column agui.held_thread.thread_id is 'The thread.';
comment on column agui.held_thread.reason is 'Why it is held.';
comment on column agui.held_thread.held_at is 'Since when.';
comment on column agui.held_thread.held_by is 'The role that was logged in.';
comment on column agui.held_thread.thread_key is 'Key of the thread.';

-- role: reader, monitor; route: merged
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

comment on function agui.lag is
    'The backlog of the jobs and the age of runs in progress, in one row (agui.lag_row). Reads the '
    'queues of the jobs and the last batch of each run in progress. Meant for monitoring: it shows '
    'only counts and ages, and pg_monitor may call it. It counts the first 100,000 runs of a queue; '
    'if there are more, is_exact is false and the counts are lower bounds. Ages are exact, as are '
    'the figures of runs in progress. exact => true counts whole queues. While row-level security '
    'is on, roles other than pg_monitor and operators get the values of their scope, of a long '
    'queue those among its first 100,000 runs.';

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

create or replace view agui.setting as
select name, value, unit, default_value, min_value, max_value, description
from agui_internal.setting;

comment on view agui.setting is
    'The settings of this database: leases and limits. agui.set_setting changes them.';
comment on column agui.setting.value is 'Current value, in the unit.';
comment on column agui.setting.unit is 'seconds, bytes or count.';
comment on column agui.setting.default_value is 'Default value.';
comment on column agui.setting.min_value is 'Smallest permitted value.';
comment on column agui.setting.max_value is 'Largest permitted value.';
comment on column agui.setting.description is 'Effect of the setting.';

-- role: reader, monitor; route: merged
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

comment on function agui.stats is
    'Counts and sizes, in one row (agui.stats_row). Reads nothing of the log. Meant for '
    'monitoring: it shows only counts, and pg_monitor may call it. A table of more than 1,000 pages '
    '(about 50,000 runs) is estimated, from 1,000 of its pages and the statistics of the planner, '
    'so that a call costs the same however large the store is: is_exact is false then. exact => '
    'true counts all rows. While row-level security is on, roles other than pg_monitor and '
    'operators get the counts of their scope, always exact, and no bytes on disk.';

create or replace view agui.tenant as
select
    tenant.role_name,
    tenant.scope,
    case when tenant.is_operator then 'operator' when tenant.is_pool then 'pool' else 'tenant' end as kind
from agui_internal.tenant as tenant
where tenant.role_name = current_user
    or exists (
        select
        from agui_internal.tenant as own
        where own.role_name = current_user and own.is_operator
    )
    or (select agui_internal.is_exempt(current_user));

comment on view agui.tenant is
    'The mappings of roles to scopes, in effect while row-level security is on. Operators and the '
    'owner see all mappings, other roles their own.';
comment on column agui.tenant.role_name is 'The role.';
comment on column agui.tenant.scope is 'Its scope; null: see kind.';
comment on column agui.tenant.kind is
    'tenant: the role has the scope in the column scope. pool: the scope in the setting '
    'agui.scope. operator: all scopes.';
