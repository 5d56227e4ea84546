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

comment on function agui_internal.choose_to_compact(uuid, timestamptz, timestamptz, uuid[], boolean, int, int, bigint, int) is
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

revoke execute on function agui_internal.choose_to_compact(uuid, timestamptz, timestamptz, uuid[], boolean, int, int, bigint, int) from public;
