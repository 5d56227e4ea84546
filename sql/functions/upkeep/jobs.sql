-- Steps, locks and notes of failure that all jobs share. Each job exists as a procedure, for psql
-- and pg_cron, and in Go (package jobs). Both call the same steps.
--
--    job_lock_id     one process at a time does a job; if the lock is taken, the job ends without
--                    an error
--    hold_thread     a step waits 200 ms at most; locked threads are skipped and retried at the end
--    note_attempt ─► the work of the run ─► note_success, in the transaction of the work
--                    an error ─► note_failure ─► back_off: 1, 2, 4 minutes … a day
--
-- - Locks are transaction-level, for PgBouncer. A procedure takes its lock once more after each
--   commit. jobs.Job.Run holds it in an idle transaction of a connection of its own, and ends if
--   that is lost. The lock saves work; it is not what makes jobs correct.
-- - A taken lock is an error if its holder may do no job, or has held it for a day
--   (job_lock_problem).
-- - No run stops a job. A note is committed before a run begins, so it remains if the process is
--   killed, and the next call does that run after all others. The commit of one run carries the
--   note of the next, so a note costs no commit.
-- - From an error on, or from the second attempt, the job waits for the backoff. Errors that say
--   nothing of the run (a lock, a full disk, a privilege) do not count; failure_kind alone classes
--   them.
-- - The unit is the run: those that continue from it wait, other branches proceed. jobs.Compact
--   notes a thread once (run number 0); `call agui.compact()` notes each run of a transaction. If a
--   group fails, or has such a note, it is processed run by run.
-- - agui.quarantine shows what failed, agui.lag counts it, agui.retry lets the next call retry at
--   once. Reads refuse a run only for errors that speak against the run itself (fold/read).
-- - A job that receives SIGTERM finishes the thread in progress, within the grace period
--   (jobs.WithGrace).
-- - Statements of jobs are planned once (begin_step; sql/schema/README.md, Migrations).

create or replace function agui_internal.allow_log_change(allowed boolean)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select set_config('agui.log_change', case when allowed then 'on' else '' end, true)
$$;

comment on function agui_internal.allow_log_change is
    'Allows statements of this transaction to pass the triggers that keep the log append-only, or '
    'stops allowing it. Only for agui_internal.repack_run, agui_internal.split_input and agui.erase, '
    'each just around its own change.';

-- role: worker, maintainer
create or replace function agui_internal.begin_step()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL the plan is cached. A function in SQL is planned in each call.
    perform
        -- The commit does not wait for the disk: a job repeats what a crash loses.
        set_config('synchronous_commit', 'off', true),
        -- An open transaction does not block a job: the job processes other threads first, then
        -- retries once.
        set_config('lock_timeout', '200ms', true),
        -- A job in Go folds between its statements.
        set_config('idle_in_transaction_session_timeout', '0', true),
        case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '0', true) end,
        -- A job plans its statements once, not for each run. If the tables were analyzed while they
        -- were empty, it would read them whole for each run, however large they become. Plans
        -- without an index look costly then, and must not be compiled.
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('enable_seqscan', 'off', true),
        -- The same of a bitmap, which reads all rows of a thread where a scan in order ends at the first.
        set_config('enable_bitmapscan', 'off', true),
        set_config('jit', 'off', true);
end
$$;

comment on function agui_internal.begin_step is
    'Makes the settings of each transaction of a job. They last until it ends.';

-- role: worker
create or replace function agui_internal.find_ends(max_runs int default 500)
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    own     record;
    run     agui.run;
    ending  record;
    found_n int := 0;
begin
    select * into own from agui_internal.own_keys();
    for run in
        select stored.*
        from agui.run as stored
        where stored.end_seq is null and stored.status <> 'running'
            and stored.thread_key >= own.low and stored.thread_key <= own.high
        order by stored.thread_key, stored.run_no
        limit max_runs
    loop
        -- Appends update rows of runs under this lock. A thread that is being written to waits for
        -- the next call.
        continue when not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(run.thread_key));
        ending := agui_internal.last_end(run.thread_key, run.run_no);
        update agui.run as ended
        set status = case
                when ended.cut_off_reason is not null and ending.status = 'failed' then 'cut_off'
                else coalesce(ending.status, ended.status)
            end,
            -- Without an end in the log, which agui.verify reports, the run must not come again.
            end_seq = coalesce(ending.seq, ended.last_seq, ended.first_seq)
        where ended.thread_key = run.thread_key and ended.run_no = run.run_no and ended.end_seq is null and ended.status <> 'running';
        found_n := found_n + 1;
    end loop;
    return found_n;
end
$$;

comment on function agui_internal.find_ends is
    'Sets status and end_seq of ended runs whose rows do not have the end (end_seq), from their '
    'log: rows that were restored from a store without that column. Returns how many; 0: there are '
    'none, or their threads are being written to.';

-- role: worker
create or replace function agui_internal.forget_ended_runs(job text)
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from agui_internal.job_note as note
    using agui_internal.own_keys() as own
    where note.job = forget_ended_runs.job
        and note.thread_key between own.low and own.high
        and not exists (
            select
            from agui.run as run
            where run.thread_key = note.thread_key and run.run_no = note.run_no and run.status = 'running'
        )
$$;

comment on function agui_internal.forget_ended_runs is
    'Deletes the notes of a job for runs in progress if the run has ended since.';

-- role: worker
create or replace function agui_internal.hold_thread(thread_key uuid, step_no bigint default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    perform from agui.thread as thread where thread.thread_key = hold_thread.thread_key for no key update skip locked;
    if not found then
        return false;
    end if;
    if step_no is not null then
        -- A sequence keeps its value if the transaction ends without a commit.
        perform setval('agui_internal.compaction_progress', step_no);
    end if;
    return true;
end
$$;

comment on function agui_internal.hold_thread is
    'Locks the row of a thread, which excludes other jobs until the transaction ends. Appends do '
    'not wait for it. False: another transaction holds the row, or it is gone. step_no: the step of '
    'agui.compact that begins (agui_internal.compaction_step).';

create or replace function agui_internal.job_lock_problem(job text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select format(
        'process %s of role "%s" holds the lock of the job %s, and %s',
        session.pid, session.usename, job_lock_problem.job,
        case when may.work then 'has held it for a day in one transaction' else 'that role may not run jobs' end
    )
    from pg_locks as lock
    join pg_stat_activity as session
        on session.pid = lock.pid
    cross join lateral (
        select coalesce(bool_or(pg_has_role(session.usesysid, worker.oid, 'member')), false) as work
        from (
            select to_regrole(name)::oid as oid from unnest(array['agui_worker', 'agui_maintainer']) as name
            union all
            select nspowner from pg_namespace where nspname = 'agui'
        ) as worker
        where worker.oid is not null
    ) as may
    where lock.locktype = 'advisory'
        and lock.database = (select oid from pg_database where datname = current_database())
        and lock.classid = ((agui_internal.job_lock_id(job) >> 32) & 4294967295)::oid
        and lock.objid = (agui_internal.job_lock_id(job) & 4294967295)::oid
        and lock.objsubid = 1
        and lock.granted
        and (not may.work or session.xact_start < clock_timestamp() - interval '1 day')
    order by session.pid
    limit 1
$$;

comment on function agui_internal.job_lock_problem is
    'The reason why a job would find its lock taken every time: the holder is a role that may not '
    'run jobs, or has held it for a day. Null: the same job is in progress. Advisory locks have no '
    'owner: any role that can connect may take one.';

create or replace function agui_internal.job_lock_id(name text)
returns bigint
language plpgsql
stable
strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.has_row_security() and (select own.low is null from agui_internal.own_keys() as own) then
        raise exception using
            errcode = '42501',
            message = format('role "%s" has no scope, so the job would find no threads', agui_internal.caller_role()),
            hint = 'Row-level security is on. Give the role of the jobs all scopes with agui.map_operator.';
    end if;
    -- The seed ("agui" in ASCII) separates the locks of pgagui from other 64-bit advisory locks in
    -- the database.
    return hashtextextended('job ' || name, x'61677569'::bigint);
end
$$;

comment on function agui_internal.job_lock_id is
    'The transaction-level advisory lock of a job (compact, repack, …). A job that finds it taken '
    'returns at once. 42501: the calling role sees no threads, so the job would silently do '
    'nothing.';

-- role: worker
create or replace function agui_internal.note_attempt(job text, thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    insert into agui_internal.job_note as note (job, thread_key, run_no, attempts)
    select note_attempt.job, note_attempt.thread_key, run_no, case when cardinality(run_nos) = 1 then 1 else 0 end
    from unnest(run_nos) as run_no
    on conflict on constraint job_note_pkey do update
    set attempts = note.attempts + 1,
        step_no = null,
        -- What speaks against the run stays until an attempt succeeds.
        code = case when note.speaks_against_run then note.code end,
        error = case when note.speaks_against_run then note.error end,
        -- This value remains if the process is killed before it records the outcome.
        next_at = case when note.attempts > 0 then agui_internal.back_off(note.attempts + 1) end,
        noted_at = excluded.noted_at;
end
$$;

comment on function agui_internal.note_attempt is
    'Records that a job is about to begin a run (0: runs of the thread). Several runs that it '
    'processes as one get 0 attempts: if that fails, the job tries each of them alone, and the '
    'attempts at a run count from then on. Commit it before the job does so.';

-- role: worker
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

comment on function agui_internal.note_failure is
    'Records the failure of an attempt and returns true; after an attempt at several runs, their '
    'notes stay as they are. If the error is a circumstance (agui_internal.failure_kind), removes '
    'the attempt.';

create or replace function agui_internal.failure_kind(code text)
returns text
language sql
immutable
parallel safe
return case
    -- Each attempt fails alike: a limit, or what the log contains. Only these keep reads from the
    -- run. An error of the reducer in Go has no SQLSTATE. P0001 is raised by a trigger that somebody
    -- else put on a table.
    when code = '' or code ~ '^(UI0(08|11|15|23)|XX001|22|54|P000[^1])' then 'run'
    -- They concern the server, the role or the current situation: a lock (55), a deadlock or a
    -- conflict (40), a full disk or too many connections (53), a missing privilege or an upgrade in
    -- progress (42), a standby (25), a shutdown (57), no connection (08).
    when code ~ '^(55|40|53|42|25|57|08|58)' and code not in ('53200', '57014', '08006') then 'circumstance'
    -- Out of memory, out of time, a connection that was lost, and what is not known: the run may
    -- have caused it, or its neighbours.
    else 'interruption'
end;

comment on function agui_internal.failure_kind is
    'What an error with this SQLSTATE (empty: it has none) says of the run that a job was at. run: '
    'it speaks against the run, so reads are refused too. interruption: it counts as an attempt, as '
    'if the job had been killed; reads go on. circumstance: the attempt does not count.';

create or replace function agui_internal.back_off(attempts int)
returns timestamptz
language sql
volatile
parallel safe
return clock_timestamp() + least(interval '1 minute' * 2 ^ least(attempts - 1, 20), interval '1 day');

comment on function agui_internal.back_off is
    'The time of the next attempt at a run after so many attempts: one minute later, doubled with '
    'each attempt, at most one day.';

-- role: worker
create or replace function agui_internal.take_back_attempt(job text, thread_key uuid, run_nos int[])
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.own_key(take_back_attempt.thread_key);
    delete from agui_internal.job_note as note
    where note.job = take_back_attempt.job
        and note.thread_key = take_back_attempt.thread_key
        and note.run_no = any (run_nos)
        and note.attempts <= 1;
    update agui_internal.job_note as note
    set attempts = note.attempts - 1, next_at = null
    where note.job = take_back_attempt.job
        and note.thread_key = take_back_attempt.thread_key
        and note.run_no = any (run_nos);
$$;

comment on function agui_internal.take_back_attempt is
    'Reverts agui_internal.note_attempt if the outcome does not concern the run.';

-- role: worker
create or replace function agui_internal.note_success(job text, thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    delete from agui_internal.job_note as note
    where note.job = note_success.job and note.thread_key = note_success.thread_key and note.run_no = any (run_nos);
end
$$;

comment on function agui_internal.note_success is
    'Deletes the notes of runs, in the transaction that does the work.';

create or replace function agui_internal.refuse_blocked(job text, blocked text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if blocked is not null then
        raise exception using
            errcode = '55P03',
            message = format('%s cannot run: %s', job, blocked),
            hint = 'End that database session with pg_terminate_backend. Work already done is kept.';
    end if;
end
$$;

comment on function agui_internal.refuse_blocked is
    'Raises 55P03 if agui_internal.job_lock_problem gave a reason why the procedure cannot take '
    'the lock of its job.';

-- role: reader, worker
create or replace function agui_internal.refuse_damaged_log(thread_key uuid, run_no int)
returns void
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run     agui.run;
    problem text;
begin
    select * into run
    from agui.run as ended
    where ended.thread_key = agui_internal.visible_key(refuse_damaged_log.thread_key) and ended.run_no = refuse_damaged_log.run_no and ended.last_seq is not null;
    if not found then
        return;
    end if;

    -- The batches of all runs, for those that were in progress at the same time interleave. What is
    -- missing between them may be of this run.
    select damaged.problem into problem
    from (
        select
            batch.first_seq,
            case
                when batch.first_seq > batch.expected_seq or batch.first_seq < batch.expected_seq and run.run_no in (batch.run_no, batch.previous_no) then
                    format('the batch at seq %s should begin at seq %s: events are missing or double', batch.first_seq, batch.expected_seq)
                when batch.run_no <> run.run_no then null
                when json_typeof(batch.events) <> 'array' then
                    format('the batch at seq %s holds a JSON %s in place of an array of events', batch.first_seq, json_typeof(batch.events))
                when json_array_length(batch.events) <> batch.n then
                    format('the batch at seq %s holds %s events, its row says %s', batch.first_seq, json_array_length(batch.events), batch.n)
            end as problem
        from (
            select
                stored.*,
                lag(stored.first_seq + stored.n, 1, run.first_seq) over in_order as expected_seq,
                lag(stored.run_no) over in_order as previous_no
            from agui.batch as stored
            where stored.thread_key = run.thread_key and stored.first_seq >= run.first_seq and stored.first_seq <= run.last_seq
            window in_order as (order by stored.first_seq)
        ) as batch
    ) as damaged
    where damaged.problem is not null
    order by damaged.first_seq
    limit 1;
    if problem is null then
        select format('the log has no event at seq %s, where run "%s" ends', run.last_seq, run.run_id)
        into problem
        where not exists (
            select
            from agui.batch as stored
            where stored.thread_key = run.thread_key and stored.run_no = run.run_no
                and stored.first_seq >= run.first_seq and stored.first_seq <= run.last_seq
                and stored.first_seq + stored.n = run.last_seq + 1
        );
    end if;
    if problem is not null then
        raise exception using
            errcode = 'data_corrupted',
            message = problem,
            hint = 'agui.verify names all that is wrong with the thread.';
    end if;
end
$$;

comment on function agui_internal.refuse_damaged_log is
    'Raises data_corrupted if the log of an ended run is damaged: batches are missing, overlap, or '
    'hold another number of events than their rows say. Compaction and repack call it where what '
    'they read of the run itself leaves a doubt.';

create or replace function agui_internal.runs_in_quarantine(thread_key uuid, with_noted boolean default false)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Usually the thread has no note, and this is one look-up in an index.
    return array(
        with recursive waiting as (
            select note.run_no
            from agui_internal.job_note as note
            where note.job = 'compact'
                and note.thread_key = runs_in_quarantine.thread_key
                and note.run_no > 0
                and (with_noted or note.next_at > clock_timestamp())
            union
            select child.run_no
            from waiting
            -- The offset keeps the planner from reading all runs of the thread first.
            cross join lateral (
                select run.run_no
                from agui.run as run
                where run.thread_key = runs_in_quarantine.thread_key and run.parent_no = waiting.run_no
                offset 0
            ) as child
        )
        select waiting.run_no from waiting
    );
end
$$;

comment on function agui_internal.runs_in_quarantine is
    'The runs of a thread that compaction postpones because it failed at them or at one of their '
    'ancestors; with_noted: also those that it may retry now.';

create or replace function agui_internal.stop_time(wanted timestamptz)
returns timestamptz
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    -- A call of a procedure is one statement, however often it commits. A fifth of its time is left
    -- to the step in progress.
    select least(wanted, statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') * 0.8)
$$;

comment on function agui_internal.stop_time is
    'When a call of a job begins no further step: at this time (null: no limit), or before '
    'statement_timeout cancels the call.';
