-- Which runs to fold next, and the steps that fold them. `call agui.compact()` and jobs.Compact
-- share the choice, the locks, the notes of failures (upkeep/jobs) and the snapshots
-- (upkeep/snapshots); compact_sequence is the fold of the former.
--
--    choose_to_compact, choose_thread_to_compact   what is next, and a note of it
--    steps_to_compact, sequence_to_compact         sequences of runs, each the parent of the next
--    compact_sequence                              folds from the carried fold or a snapshot,
--                                                  stores
--    mark_compacted                                last: sets run.log_bytes
--
-- - Each run is folded once. The fold of a run is carried on to its child
--   (agui_internal.carried_fold). Others may process the thread between two commits, so a carried
--   fold counts only while the run and the snapshot that it points into are unchanged.
-- - PL/pgSQL copies the carried fold a few times in each step. So a step takes runs whose log is as
--   long as that fold, 16 KB to 1 MB, 500 runs at most: a thread takes time in proportion to its
--   log. A snapshot is kept only at the end of a sequence, and a sequence ends where a branch
--   begins.
-- - PL/pgSQL sets up each expression once a transaction, which is half the cost of a short run. So
--   up to 16 steps, each of another thread or branch, share a commit. Each is undone alone if it
--   fails. What appends wait for is changed late, and titles at the end.
-- - A run of one batch is marked as repacked, too: there is nothing to join.
-- - With max_time a run is folded in pieces (fold_piece_end), and the clock is checked after each.
--   When the time is over, what is there becomes a snapshot through the seq where the fold stopped,
--   and the run stays in the queue. One piece is always done, so each call makes progress.
--   jobs.Compact stores no such snapshots, because a fold in Go takes a fraction of the time.
-- - A sequence of the database, which keeps its value without a commit, says which step began last
--   (compaction_progress). If the process is killed, the next call counts an attempt at that run
--   and does it after all others (note_interruption).
-- - The job in Go keeps an open fold for each run of a thread, in the order of seq, and commits
--   once a thread. It sends statements together, because waiting for the server costs more than a
--   short fold.

-- role: worker
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

comment on function agui_internal.choose_thread_to_compact is
    'Chooses a thread without notes, from the position from_at in the queue on, and notes it, as '
    'agui_internal.choose_to_compact does with whole_threads. Nulls: there is none. A job that does '
    'a thread at a time spends a quarter of the time of the server on choosing with that one.';

-- role: worker
create or replace function agui_internal.choose_to_compact(
    near         uuid,
    from_at      timestamptz,
    due_by       timestamptz,
    passed_over  uuid[],
    whole_threads boolean,
    after_no     int default 0,
    max_runs     int default 1,
    fold_bytes   bigint default null,
    max_steps    int default 1
)
returns agui_internal.compaction_step[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Done in some ten milliseconds: appends may wait for the rows that a step has changed.
    max_bytes constant int := 64 * 1024;
    is_first  constant boolean := from_at = '-infinity';
    own       record;
    found_one record;
    part      record;  -- the runs of a thread
    run_no    int;
    step      agui_internal.compaction_step;
    steps     agui_internal.compaction_step[] := '{}';
    bytes     bigint := 0;
    is_full   boolean := false;
    last_no   bigint;
begin
    perform agui_internal.own_key(near);
    select * into own from agui_internal.own_keys();
    if near is not null then
        run_no := agui_internal.next_to_compact(near, due_by, after_no);
        if run_no is null then
            -- The whole thread is done except for what waits, so it is no longer processed run by
            -- run.
            delete from agui_internal.job_note as note
            where note.job = 'compact' and note.thread_key = near and note.run_no = 0;
        else
            select * into part
            from agui_internal.steps_to_compact(near, run_no, from_at, due_by, max_runs, fold_bytes, max_steps, max_bytes);
            steps := part.steps;
            bytes := part.bytes;
            max_runs := max_runs - part.runs;
            passed_over := passed_over || near;
            -- The fold is carried on to the next transaction if that continues with the thread.
            is_full := part.is_noted or not part.ends_thread;
        end if;
    end if;
    <<queue>>
    while not is_full and cardinality(steps) < max_steps and bytes < max_bytes and max_runs > 0 is not false loop
        step := null;
        -- Skip threads that others hold. Continuing from the last position avoids the index entries
        -- of all runs done since then, which only vacuum removes.
        for found_one in
            select run.thread_key, run.ended_at
            from agui.run as run
            join agui.thread as thread on thread.thread_key = run.thread_key
            where run.log_bytes is null
                and run.status <> 'running'
                and run.ended_at >= from_at
                and run.ended_at <= due_by
                and run.thread_key <> all (passed_over)
                -- As a case expression, the condition cannot make the planner choose another index
                -- than that of the queue.
                and case when agui_internal.has_row_security() then run.thread_key >= own.low and run.thread_key <= own.high else true end
                and not exists (
                    select from agui_internal.job_note as note where note.job = 'compact' and note.thread_key = run.thread_key
                )
            order by run.ended_at
            limit max_steps - cardinality(steps)
            for no key update of thread skip locked
        loop
            step.thread_key := found_one.thread_key;
            continue when step.thread_key = any (passed_over);
            passed_over := passed_over || step.thread_key;
            step.place := found_one.ended_at;
            step.run_nos := '{0}';
            if not whole_threads then
                -- A thread released just now may still look unprocessed in that statement. This one
                -- has a newer snapshot. Since it has no notes, none of its runs waits.
                select due.run_no into run_no
                from agui.run as due
                where due.thread_key = step.thread_key and due.log_bytes is null and due.status <> 'running' and due.ended_at <= due_by
                order by due.run_no
                limit 1;
                continue when not found;
                select * into part from agui_internal.sequence_to_compact(step.thread_key, run_no, due_by, max_runs);
                exit queue when steps <> '{}' and (part.is_noted or bytes + part.bytes > max_bytes);
                step.run_nos := part.run_nos;
                bytes := bytes + part.bytes;
                max_runs := max_runs - cardinality(part.run_nos);
                is_full := part.is_noted or not part.ends_thread;
            end if;
            steps := steps || step;
            exit queue when is_full or bytes >= max_bytes or max_runs <= 0;
        end loop;
        exit when step.thread_key is null;
    end loop;
    if steps = '{}' and is_first then
        -- Last, runs of an earlier attempt that did not succeed: fewest attempts first.
        select noted.thread_key, noted.next_no
        into found_one
        from agui.thread as thread
        join lateral (
            select note.thread_key, min(note.attempts) as attempts, min(note.noted_at) as noted_at, agui_internal.next_to_compact(note.thread_key, due_by) as next_no
            from agui_internal.job_note as note
            where note.job = 'compact' and note.thread_key <> all (passed_over) and note.thread_key >= own.low and note.thread_key <= own.high
            group by note.thread_key
        ) as noted on noted.thread_key = thread.thread_key
        where noted.next_no is not null
        order by noted.attempts, noted.noted_at
        limit 1
        for no key update of thread skip locked;
        if found then
            select * into part from agui_internal.sequence_to_compact(found_one.thread_key, found_one.next_no, due_by, max_runs);
            steps := array[(found_one.thread_key, part.run_nos, from_at, null)::agui_internal.compaction_step];
        end if;
    end if;
    if cardinality(steps) = 1 then
        perform agui_internal.note_attempt('compact', steps[1].thread_key, steps[1].run_nos);
    elsif cardinality(steps) > 1 then
        select progress.last_value into last_no from agui_internal.compaction_progress as progress;
        for place in 1 .. cardinality(steps) loop
            steps[place].step_no := last_no + place;
        end loop;
        insert into agui_internal.job_note (job, thread_key, run_no, attempts, step_no)
        select 'compact', chosen.thread_key, part_no, 0, chosen.step_no
        from unnest(steps) as chosen
        cross join unnest(chosen.run_nos) as part_no
        on conflict on constraint job_note_pkey do nothing;
    end if;
    return steps;
end
$$;

comment on function agui_internal.choose_to_compact is
    'Chooses what to compact next, in one transaction, and notes it; commit the notes before '
    'beginning. The choice is the next runs of the thread near, where after_no is the last run '
    'done; then, from the position from_at in the queue on, runs of the threads whose runs ended '
    'first; else, from the beginning, a run of a thread that has notes. Up to max_runs (null: no '
    'limit) of a lineage are one step, after a fold of fold_bytes '
    '(agui_internal.sequence_to_compact). There are up to max_steps of 64 KB together: of near several '
    '(agui_internal.steps_to_compact), of each other thread one, and each thread but the last one '
    'ends with its steps; a run with a note comes '
    'alone. whole_threads: run_nos is {0} for a thread without notes, whose runs are then processed '
    'in one transaction. Empty: there is none. Threads that others hold, and threads outside the '
    'scopes of the role, are skipped.';

create or replace function agui_internal.next_to_compact(thread_key uuid, due_by timestamptz, after_no int default 0)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting int[];
    next_no int;
    waits_for_parent boolean;
begin
    -- First runs without a failed attempt, then those that may be retried. Before both, attempt 0
    -- searches after the run after_no, which avoids reading all runs that are done.
    for attempt in case when after_no > 0 then 0 else 1 end .. 2 loop
        waiting := agui_internal.runs_in_quarantine(thread_key, with_noted => attempt < 2);
        -- Parents before children. A parent has ended before its children, so it is due when they
        -- are.
        select
            run.run_no,
            -- Not "exists", for which the planner may hash the whole table.
            coalesce((
                select parent.log_bytes is null
                from agui.run as parent
                where parent.thread_key = run.thread_key and parent.run_no = run.parent_no
            ), false)
        into next_no, waits_for_parent
        from agui.run as run
        where run.thread_key = next_to_compact.thread_key
            and run.run_no > case when attempt = 0 then after_no else 0 end
            and run.log_bytes is null
            and run.status <> 'running'
            and run.ended_at <= due_by
            and run.run_no <> all (waiting)
        order by run.run_no
        limit 1;
        -- A parent that ended late, or that something was appended to, may be before after_no.
        exit when case when attempt = 0 then not waits_for_parent else found or waiting = '{}' end;
    end loop;
    return next_no;
end
$$;

comment on function agui_internal.next_to_compact is
    'The number of the next run of a thread that compaction has to process, one that ended by '
    'due_by; null: there is none. after_no is the last run done (0: none): runs after it come '
    'first. Runs in quarantine, and those that continue from them, are skipped.';

create or replace function agui_internal.steps_to_compact(
    thread_key uuid,
    run_no     int,
    place      timestamptz,
    due_by     timestamptz,
    max_runs   int,
    fold_bytes bigint,
    max_steps  int,
    max_bytes  bigint,
    out steps       agui_internal.compaction_step[],
    out runs        int,
    out bytes       bigint,
    out is_noted    boolean,
    out ends_thread boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    part record;
begin
    steps := '{}';
    runs := 0;
    bytes := 0;
    loop
        select * into part from agui_internal.sequence_to_compact(thread_key, run_no, due_by, max_runs - runs, fold_bytes);
        exit when steps <> '{}' and (part.is_noted or bytes + part.bytes > max_bytes);
        steps := steps || (thread_key, part.run_nos, place, null)::agui_internal.compaction_step;
        runs := runs + cardinality(part.run_nos);
        bytes := bytes + part.bytes;
        is_noted := part.is_noted;
        ends_thread := part.ends_thread;
        exit when is_noted or ends_thread or cardinality(steps) >= max_steps or runs >= max_runs;

        -- A branch beside it, which waits for no step of this transaction.
        run_no := part.run_nos[cardinality(part.run_nos)] + 1;
        perform
        from agui.run as due
        where due.thread_key = steps_to_compact.thread_key and due.run_no = steps_to_compact.run_no
            and due.log_bytes is null and due.status <> 'running' and due.ended_at <= due_by
            -- Not "exists", for which the planner may hash the whole table.
            and coalesce((
                select parent.log_bytes is not null
                from agui.run as parent
                where parent.thread_key = due.thread_key and parent.run_no = due.parent_no
            ), true);
        exit when not found;
    end loop;
end
$$;

comment on function agui_internal.steps_to_compact is
    'What compaction does of a thread in one transaction, beginning with the run run_no, which is '
    'due: a sequence (agui_internal.sequence_to_compact), and the sequences of the runs that begin '
    'next, if they continue from runs that are compacted already. Those are up to max_steps, of '
    'max_bytes and max_runs (null: no limit) together. A run with a note (is_noted) comes alone. '
    'runs, bytes: how many runs they are, and the size of their log. ends_thread: the thread has no '
    'later run.';

create or replace function agui_internal.sequence_to_compact(
    thread_key uuid,
    run_no     int,
    due_by     timestamptz,
    max_runs   int default null,
    fold_bytes bigint default null,
    out run_nos     int[],
    out bytes       bigint,
    out is_noted    boolean,
    out ends_thread boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- As much log as the fold that it continues from is long. Then copying that fold takes a small
    -- part of the time, however long the thread is, and a read of a run in the sequence folds in
    -- proportion to what it returns. For a short fold, the cost of a step counts instead.
    most_bytes constant bigint := greatest(fold_bytes, 16 * 1024);
    -- Folded in some hundred milliseconds.
    max_bytes  constant int := 1024 * 1024;
    max_events constant int := 5000;
    max_length constant int := 500;
    run        record;
    events     bigint := 0;
begin
    run_nos := '{}';
    bytes := 0;
    loop
        select
            due.run_no,
            due.last_seq - due.first_seq + 1 as events,
            (
                select coalesce(sum(coalesce(batch.text_bytes, pg_column_size(batch.events))), 0)
                from agui.batch as batch
                where batch.thread_key = due.thread_key
                    and batch.run_no = due.run_no
                    and batch.first_seq between due.first_seq and due.last_seq
            ) + (
                select coalesce(sum(coalesce(given.part_bytes, given.bytes, octet_length(given.input::text))), 0)
                from agui.run_input as given
                where given.thread_key = due.thread_key and given.run_no = due.run_no
            ) as bytes,
            -- Not as conditions, which could make the planner choose the index of the queue.
            due.log_bytes is null and due.status <> 'running' and due.ended_at <= due_by as is_due,
            exists (
                select
                from agui_internal.job_note as note
                where note.job = 'compact' and note.thread_key = due.thread_key and note.run_no = due.run_no
            ) as is_noted,
            -- A branch begins with the fold of its parent, so that run is the end of a sequence.
            (
                select case when count(*) = 1 then min(child.run_no) end
                from agui.run as child
                where child.thread_key = due.thread_key and child.parent_no = due.run_no
            ) as child_no,
            -- Not "max", for which a plan may read all of them.
            (select last.run_no from agui.run as last where last.thread_key = due.thread_key order by last.run_no desc limit 1) as last_no
        into run
        from agui.run as due
        where due.thread_key = sequence_to_compact.thread_key and due.run_no = sequence_to_compact.run_no;

        events := events + run.events;
        exit when run_nos <> '{}'
            and (
                run.is_due and not run.is_noted and events <= max_events and bytes + run.bytes <= least(most_bytes, max_bytes)
            ) is not true;
        run_nos := run_nos || run_no;
        bytes := bytes + run.bytes;
        is_noted := run.is_noted;
        ends_thread := run.last_no = run.run_no;
        exit when run.is_noted or cardinality(run_nos) >= least(max_runs, max_length) or (run.child_no > run_no) is not true;
        run_no := run.child_no;
    end loop;
end
$$;

comment on function agui_internal.sequence_to_compact is
    'The runs that compaction processes in one step, beginning with run_no, which is due: each is '
    'the only child of the one before, ended by due_by, and without a note of a failed attempt. '
    'Their log is as long as the fold that they continue from (fold_bytes; at least 16 KB, at most '
    '1 MB, 5,000 events and 500 runs; null: 16 KB), except that the first run may be longer. '
    'Snapshots are kept only at the end of such a sequence, so a read of a run in it folds at most '
    'that much more. max_runs (null: no limit) shortens it. bytes: the size of their log. is_noted: '
    'it is one run, with a note. ends_thread: the thread has no later run.';

-- role: worker
create or replace function agui_internal.compact_running_run(thread_key uuid, run_no int, stop_at timestamptz default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    latest agui.run;
begin
    perform agui_internal.own_key(thread_key);
    if not agui_internal.hold_thread(thread_key) then
        return;
    end if;
    -- Read a second time: the run may have ended since, and then compaction processes it.
    select run.* into latest
    from agui.run as run
    where run.thread_key = compact_running_run.thread_key and run.run_no = compact_running_run.run_no;
    if latest.status = 'running' and not agui_internal.awaits_start(thread_key, run_no, 9223372036854775807) then
        perform agui_internal.refuse_quarantined(latest, null, of_job => true);
        perform agui_internal.write_snapshot(
            thread_key, run_no,
            agui_internal.fold_run(thread_key, run_no, null, agui_internal.fold_base(thread_key, run_no), stop_at)
        );
        perform agui_internal.fill_title(thread_key);
    end if;
end
$$;

comment on function agui_internal.compact_running_run is
    'Makes or renews the snapshot of a run in progress. Does nothing if the run has ended, if '
    'another transaction holds its thread, or if a later RUN_STARTED would change what its events '
    'mean. From stop_at on (null: no limit) it ends with a snapshot of a part of the run, from '
    'which the next call continues.';

-- role: worker
create or replace function agui_internal.compact_sequence(
    thread_key uuid,
    run_nos    int[],
    carried    agui_internal.carried_fold default null,
    stop_at    timestamptz default null,
    limits     agui_internal.fold_limits default null
)
returns agui_internal.carried_fold
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    is_one   constant boolean := cardinality(run_nos) = 1;
    last_no  constant int := run_nos[cardinality(run_nos)];
    runs     record;
    last_seq bigint;  -- of the last run
    result   agui_internal.carried_fold;
    fold     agui_internal.fold;
    start_no int;  -- the run whose snapshot the fold starts from
    held     int4multirange;
    size     record;
    is_carried boolean := false;
    is_kept  boolean;
    old_tip  int;
begin
    perform agui_internal.own_key(thread_key);
    -- All that the rows say, in one statement: for a short run, each further one counts.
    select
        array_agg(measured.first_seq - 1) as after_seqs,
        array_agg(measured.last_seq) as through_seqs,
        array_agg(measured.n) as ns,
        array_agg(measured.batches) as batches,
        array_agg(measured.log_bytes) as log_bytes,
        sum(measured.log_bytes) as all_log_bytes,
        bool_or(measured.has_input) as has_input,
        count(*) filter (where measured.is_due) as due_n,
        (array_agg(measured.parent_no))[1] as parent_no,
        (array_agg(measured.ended_at))[cardinality(run_nos)] as ended_at,
        array_agg(measured.run_no) filter (where (measured.end_seq = measured.last_seq + 1 and measured.is_dense) is not true) as doubtful_nos,
        not exists (
            select
            from agui.run as younger
            where younger.thread_key = compact_sequence.thread_key
                and younger.run_no > last_no
                and younger.status <> 'running'
        ) as is_tip,
        exists (
            select from agui.run as child where child.thread_key = compact_sequence.thread_key and child.parent_no = last_no
        ) as has_children,
        exists (select from agui.snapshot as stored where stored.thread_key = compact_sequence.thread_key) as has_snapshots
    into runs
    from (
        select
            ended.run_no, ended.parent_no, ended.first_seq, ended.last_seq, ended.ended_at,
            ended.log_bytes is null
                and ended.status <> 'running'
                and (list.position = 1 or ended.parent_no = run_nos[list.position::int - 1]) as is_due,
            given.bytes is not null as has_input,
            log.n, log.batches, log.end_seq, log.is_dense, log.bytes + coalesce(given.bytes, 0) as log_bytes
        from unnest(run_nos) with ordinality as list (run_no, position)
        join agui.run as ended
            on ended.thread_key = compact_sequence.thread_key and ended.run_no = list.run_no
        cross join lateral (
            select
                sum(batch.n) as n, count(*) as batches, max(batch.first_seq + batch.n) as end_seq,
                bool_and(
                    batch.first_seq = batch.expected_seq
                    and case when json_typeof(batch.events) = 'array' then json_array_length(batch.events) = batch.n else false end
                ) as is_dense,
                sum(agui_internal.stored_bytes(batch.events, batch.earlier_us))::bigint as bytes
            from (
                select stored.*, lag(stored.first_seq + stored.n, 1, ended.first_seq) over (order by stored.first_seq) as expected_seq
                from agui.batch as stored
                where stored.thread_key = ended.thread_key
                    and stored.run_no = ended.run_no
                    and stored.first_seq >= ended.first_seq and stored.first_seq <= ended.last_seq
            ) as batch
        ) as log
        left join lateral (
            select agui_internal.input_bytes(beside.thread_key, beside.run_no) as bytes
            from agui.run_input as beside
            where beside.thread_key = ended.thread_key and beside.run_no = ended.run_no
        ) as given on true
        order by list.position
    ) as measured;
    if runs.due_n < cardinality(run_nos) then
        result.is_done := true;
        return result;
    end if;
    last_seq := runs.through_seqs[cardinality(run_nos)];

    if runs.doubtful_nos is not null then
        -- Runs that were in progress at the same time, or damage.
        perform agui_internal.refuse_damaged_log(thread_key, doubtful_no) from unnest(runs.doubtful_nos) as doubtful_no;
    end if;

    -- Between two commits, other transactions may have changed the thread: its log, its snapshots,
    -- or the whole thread may be gone or new.
    if carried.thread_key = thread_key and carried.run_no = runs.parent_no and exists (
        select
        from agui.run as parent
        left join agui.snapshot as base
            on base.thread_key = parent.thread_key and base.run_no = carried.base_no
        where parent.thread_key = carried.thread_key
            and parent.run_no = carried.run_no
            and parent.last_seq = (carried.fold).through_seq
            and parent.ended_at = carried.ended_at
            and base.created_at is not distinct from carried.base_at
    ) then
        result.base_no := carried.base_no;
        result.base_is_tip := carried.base_is_tip;
        result.log_bytes := carried.log_bytes;
        fold := carried.fold;
        is_carried := true;
    elsif runs.parent_no is null and not runs.has_snapshots then
        fold := agui_internal.fold_empty();
        result.base_is_tip := true;
    end if;
    if fold.through_seq is not null then
        if runs.has_input then
            fold := agui_internal.fold_runs(
                fold, thread_key, run_nos, runs.after_seqs, runs.through_seqs, case when is_one then stop_at end, limits
            );
        else
            fold.spent := 0;
            fold := agui_internal.fold_events(
                fold, thread_key, run_nos, runs.after_seqs, runs.through_seqs, stop_at => case when is_one then stop_at end, limits => limits
            );
        end if;
        result.log_bytes := coalesce(result.log_bytes, 0) + runs.all_log_bytes;
        -- Patches wait until a snapshot is kept or there are many of them: most often the next run
        -- begins with another state.
        if octet_length(array_to_string(fold.state_patches, '')) > octet_length(fold.state) / 4 then
            fold := agui_internal.fold_patched(fold, limits);
        end if;
    else
        -- The run itself may have a snapshot, from when it was in progress or from a call that ran
        -- out of time.
        start_no := case
            when is_one then agui_internal.fold_base(thread_key, last_no, last_seq)
            else agui_internal.strict_base(thread_key, run_nos[1])
        end;
        fold := agui_internal.fold_run(thread_key, last_no, last_seq, start_no, case when is_one then stop_at end);
        result.base_no := case when start_no = last_no then agui_internal.strict_base(thread_key, last_no) else start_no end;
        result.base_is_tip := true;
        result.log_bytes := agui_internal.log_bytes_since(thread_key, run_nos[1], result.base_no) + runs.all_log_bytes;
    end if;

    if fold.through_seq < last_seq then
        if exists (
            select
            from agui.batch as batch
            where batch.thread_key = compact_sequence.thread_key
                and batch.run_no = last_no
                and batch.first_seq > fold.through_seq and batch.first_seq <= last_seq
        ) then
            perform agui_internal.write_snapshot(thread_key, last_no, fold);
            result := null;
            result.is_cut := true;
            return result;
        end if;
    end if;

    is_kept := runs.is_tip;
    if not is_kept then
        if start_no = last_no then
            held := agui_internal.held_messages(thread_key, result.base_no);
        end if;
        -- These sizes are uncompressed. The stored sizes will be smaller, so the rule keeps too few
        -- snapshots rather than too many.
        select
            octet_length(fold.state) + octet_length(array_to_string(fold.state_patches, '')) + octet_length(fold.interrupts) as document_bytes,
            coalesce(sum(octet_length(message.body)), 0) as message_bytes,
            count(*) filter (where message.is_new) as new_messages,
            coalesce(sum(octet_length(message.body)) filter (where message.is_new), 0) as new_bytes
        into size
        from (
            select listed.body, coalesce(listed.message_no, 0) <= 0 or not listed.message_no <@ held as is_new
            from unnest(fold.message_nos, fold.bodies) as listed (message_no, body)
        ) as message;

        result.bytes := size.document_bytes + size.message_bytes;
        is_kept := agui_internal.is_worth_keeping(
            result.log_bytes, agui_internal.snapshot_bytes(size.document_bytes, size.new_messages, size.new_bytes)
        );
    end if;
    -- A later RUN_STARTED would change what the events before it mean.
    if is_kept and runs.has_input then
        is_kept := not agui_internal.awaits_start(thread_key, last_no, last_seq);
    end if;

    if runs.has_snapshots and (not is_kept or not is_one) then
        -- a snapshot of a part of a run may remain
        perform agui_internal.drop_snapshots(thread_key, case when is_kept then trim_array(run_nos, 1) else run_nos end);
    end if;
    if is_kept then
        fold := agui_internal.write_snapshot(thread_key, last_no, fold);
        if runs.has_snapshots then
            old_tip := agui_internal.previous_tip(thread_key, last_no);
        end if;
        if old_tip is not null and (old_tip is distinct from result.base_no or result.base_is_tip) then
            perform agui_internal.drop_needless_snapshot(thread_key, old_tip);
        end if;
        result.base_no := last_no;
        result.base_is_tip := runs.is_tip;
        result.log_bytes := 0;
    end if;

    -- Last, because an append waits while the rows are held. If something was appended after the end
    -- of a run in the meantime, it is processed a second time, from this snapshot on.
    perform agui_internal.mark_compacted(thread_key, run_nos, runs.through_seqs, runs.ns, runs.log_bytes, runs.batches);

    if not runs.has_children and is_carried then
        return carried;  -- what follows may be another child of the same parent
    end if;
    if runs.is_tip or start_no = last_no and not is_kept then
        return null;  -- nothing follows, or the messages that the fold refers to are deleted
    end if;
    result.thread_key := thread_key;
    result.run_no := last_no;
    result.ended_at := runs.ended_at;
    result.fold := fold;
    result.base_at := (
        select base.created_at
        from agui.snapshot as base
        where base.thread_key = compact_sequence.thread_key and base.run_no = result.base_no
    );
    return result;
end
$$;

comment on function agui_internal.compact_sequence is
    'Compacts ended runs, each the parent of the next: measures their log, folds their lineage, and '
    'keeps the result as the snapshot of the last one if that is the tip of its thread (the '
    'youngest run that has ended) or agui_internal.is_worth_keeping says so. carried is the result '
    'of the call for the parent of the first (null: none). The fold continues from there if that '
    'is still valid, else from the nearest snapshot. Returns the same for the runs that follow (null: '
    'none can); after a leaf, that is carried. If '
    'there is one run, it ends from stop_at on (null: no limit) with a snapshot of a part of the '
    'run, from which the next call continues, and returns is_cut. If the runs were compacted since '
    'they were chosen, it only returns is_done. limits: null reads them. The caller holds the row of '
    'the thread.';

create or replace function agui_internal.previous_tip(thread_key uuid, before_no int default null)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- The plan is cached from a time when the thread had no snapshot, and a plan that sorts would read
-- all of them.
set enable_sort = off
set enable_seqscan = off
set jit = off
as $$
begin
    return (
        select snapshot.run_no
        from agui.snapshot as snapshot
        where snapshot.thread_key = previous_tip.thread_key
            and snapshot.run_no < coalesce(before_no, 2147483647)
            and exists (
                select from agui.run as run
                where run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no and run.log_bytes is not null
                offset 0
            )
        order by snapshot.run_no desc
        limit 1
    );
end
$$;

comment on function agui_internal.previous_tip is
    'The youngest compacted run with a snapshot before the given one. It may have its snapshot '
    'only because it was the tip. Null: none.';

-- role: worker
create or replace function agui_internal.mark_compacted(
    thread_key uuid,
    run_nos    int[],
    last_seqs  bigint[],
    ns         bigint[],
    log_bytes  bigint[],
    batches    bigint[]
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    if cardinality(run_nos) = 1 then
        update agui.run as run
        set n = ns[1], log_bytes = mark_compacted.log_bytes[1],
            -- There is nothing to join.
            repacked_at = case when batches[1] = 1 then coalesce(run.repacked_at, clock_timestamp()) else run.repacked_at end
        where run.thread_key = mark_compacted.thread_key and run.run_no = run_nos[1] and run.last_seq = last_seqs[1];
        return;
    end if;
    update agui.run as run
    set n = compacted.n, log_bytes = compacted.log_bytes,
        repacked_at = case when compacted.batches = 1 then coalesce(run.repacked_at, clock_timestamp()) else run.repacked_at end
    from unnest(run_nos, last_seqs, ns, mark_compacted.log_bytes, mark_compacted.batches) as compacted (run_no, last_seq, n, log_bytes, batches)
    where run.thread_key = mark_compacted.thread_key and run.run_no = compacted.run_no and run.last_seq = compacted.last_seq
        -- What the join says too: so that no plan reads all runs of the thread.
        and run.run_no >= (select min(number) from unnest(run_nos) as number)
        and run.run_no <= (select max(number) from unnest(run_nos) as number);
end
$$;

comment on function agui_internal.mark_compacted is
    'Removes runs that were folded from the queue of compaction, and those of one batch from that '
    'of repack, except runs with events that were appended after last_seq in the meantime. The '
    'caller holds the row of the thread.';

create or replace function agui_internal.lineage_behind(thread_key uuid, run_no int, base_no int)
returns setof agui.run
language sql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
as $$
    with recursive ancestor as (
        select run.*
        from agui.run as run
        where run.thread_key = agui_internal.visible_key(lineage_behind.thread_key) and run.run_no = lineage_behind.run_no
        union all
        select parent.*
        from ancestor
        -- The offset makes this one look-up for each, as in agui_internal.ancestors.
        cross join lateral (
            select older.*
            from agui.run as older
            where older.thread_key = ancestor.thread_key and older.run_no = ancestor.parent_no and older.run_no < ancestor.run_no
            offset 0
        ) as parent
        where ancestor.run_no <> lineage_behind.base_no
    )
    select * from ancestor
$$;

comment on function agui_internal.lineage_behind is
    'The rows of the runs from a run to its ancestor base_no (0: to its root), both included.';

-- role: worker
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

comment on function agui_internal.note_interruption is
    'Counts an attempt at the run that a killed call of agui.compact had begun last, so that it '
    'comes after those that were chosen together with it. Each of them is then tried alone. A call '
    'does this at its beginning, when it has the lock of the job.';
