-- role: worker; route: worker
create or replace procedure agui.compact(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default '0'
)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    due_by  pg_catalog.timestamptz := 'infinity';
    from_at pg_catalog.timestamptz := '-infinity';
    steps   agui_internal.compaction_step[] := '{}';  -- of the next transaction; notes of them are committed
    step    agui_internal.compaction_step;
    limits  agui_internal.fold_limits;
    near    pg_catalog.uuid;    -- the last thread compacted, whose row is locked
    folded  pg_catalog.uuid[];  -- the threads compacted in this transaction
    carried agui_internal.carried_fold;
    runs    int := 0;
    is_first boolean := true;
    is_begun boolean := false;
    busy    pg_catalog.uuid[] := '{}';
    has_come_back boolean := false;
    failed  pg_catalog.uuid[] := '{}';
    is_failed boolean;
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
    waiting bigint;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    if older_than > '0' then  -- if it is 0, a run is due even if the clock was set back since the run ended
        due_by := pg_catalog.clock_timestamp() - older_than;
    end if;
    while agui_internal.apply_rules() operator(pg_catalog.>) 0 loop
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() operator(pg_catalog.>=) stop_at;
    end loop;
    if (max_time <= '0') is not true then
        -- Before runs are folded, because a fold takes from parts only what is new.
        call agui_internal.split_inputs((stop_at - pg_catalog.clock_timestamp()) / 2);
        set local search_path = pg_catalog, pg_temp;
    end if;
    loop
        -- A transaction-level lock: each commit releases it, so it never stays behind on a pooled
        -- connection.
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact')) then
            -- the runs are not begun
            perform agui_internal.take_back_attempt('compact', chosen.thread_key, chosen.run_nos) from pg_catalog.unnest(steps) as chosen;
            blocked := agui_internal.job_lock_problem('compact');
            if blocked is null then
                raise notice 'agui.compact stops: another compaction is in progress';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();
        if is_first then
            perform agui_internal.note_interruption();
            limits := agui_internal.limits_of_folds(agui_internal.rules());
            is_first := false;
        end if;

        near := null;
        folded := '{}';
        foreach step in array steps loop
            near := null;
            if is_begun and pg_catalog.clock_timestamp() >= stop_at then
                perform agui_internal.take_back_attempt('compact', step.thread_key, step.run_nos);
                continue;
            end if;
            is_begun := true;
            if not agui_internal.hold_thread(step.thread_key, step.step_no) then
                perform agui_internal.take_back_attempt('compact', step.thread_key, step.run_nos);
                busy := busy || step.thread_key;
            else
                begin
                    carried := agui_internal.compact_sequence(step.thread_key, step.run_nos, carried, stop_at, limits);
                    if carried.is_cut then
                        -- the run is not folded to its end
                        perform agui_internal.take_back_attempt('compact', step.thread_key, step.run_nos);
                    else
                        perform agui_internal.note_success('compact', step.thread_key, step.run_nos);
                        if carried.is_done is null then
                            runs := runs + pg_catalog.cardinality(step.run_nos);
                        end if;
                    end if;
                    near := step.thread_key;
                    folded := pg_catalog.array_remove(folded, near) || near;
                exception
                    when others then
                        carried := null;
                        if agui_internal.note_failure('compact', step.thread_key, sqlstate, sqlerrm, step.run_nos) then
                            near := step.thread_key;
                            -- Of several runs, each is then tried alone.
                            is_failed := pg_catalog.cardinality(step.run_nos) = 1;
                            if is_failed then
                                raise warning 'agui.compact: thread with key %, run number %: %', step.thread_key, step.run_nos[1], sqlerrm;
                            end if;
                        else
                            raise warning 'agui.compact: the thread with key % is postponed: %', step.thread_key, sqlerrm;
                            busy := busy || step.thread_key;
                            is_failed := sqlstate <> '55P03';
                        end if;
                        if is_failed then
                            failed := pg_catalog.array_remove(failed, step.thread_key) || step.thread_key;
                            failure := coalesce(failure, sqlerrm);
                            code := coalesce(code, sqlstate);
                        end if;
                end;
            end if;
        end loop;

        -- Late, because appends wait for what this locks.
        begin
            perform agui_internal.fill_title(untitled.thread_key) from pg_catalog.unnest(folded) as untitled (thread_key);
        exception
            when others then
                raise warning 'agui.compact: titles of threads: %', sqlerrm;
        end;

        -- The commit includes the notes of the next steps. If this process is killed in one of those
        -- (out of memory, time limit), the next call compacts the other runs first, then each of
        -- these alone, the one that was in progress last.
        exit when runs >= max_runs or max_time <= '0' or is_begun and pg_catalog.clock_timestamp() >= stop_at;
        steps := agui_internal.choose_to_compact(
            near, from_at, due_by, busy, false, step.run_nos[pg_catalog.cardinality(step.run_nos)],
            -- Several runs are not folded in pieces.
            case when pg_catalog.clock_timestamp() >= stop_at - interval '1 second' then 1 else max_runs - runs end,
            carried.bytes, 16
        );
        commit;
        set local search_path = pg_catalog, pg_temp;
        if steps <> '{}' then
            from_at := steps[pg_catalog.cardinality(steps)].place;
        elsif from_at > '-infinity' then
            from_at := '-infinity';  -- what was locked before may be free now
        else
            exit when busy = '{}' or has_come_back;
            has_come_back := true;
            busy := '{}';
        end if;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    -- Most of the log is stored as small batches until it is repacked.
    call agui.repack(max_runs, stop_at - pg_catalog.clock_timestamp());
    set local search_path = pg_catalog, pg_temp;

    select pg_catalog.count(*) into waiting
    from agui.quarantine as quarantine
    where quarantine.job = 'compact';
    if waiting > 0 then
        raise notice 'agui.compact left % runs, and the runs that continue from them, in quarantine: see agui.quarantine', waiting;
    end if;
    perform agui_internal.refuse_blocked('agui.compact', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.compact: compaction failed for %s of the threads: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their keys: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'All other runs are done. agui.quarantine says when the failed ones are retried; agui.retry lets the next call retry them at once.';
    end if;
    commit;
end
$$;

comment on procedure agui.compact is
    'Compacts runs that have ended: folds them, thread by thread, oldest first, and keeps the '
    'snapshots that the rules require. Before that it stores inputs in parts, in at most half of '
    'the time. At the end it calls agui.repack for runs that ended long enough ago. Stops after '
    'max_runs runs or after max_time (null: no limit), or in time before statement_timeout, also '
    'within a long run; the next call continues from there. Each call folds at least some thousand '
    'events, unless max_time is 0. Runs that ended less than older_than ago are left for later. '
    'Commits after each run, or some short runs, so it can be cancelled and called at any time. If '
    'a run fails, or the process is killed in it, the other runs are still compacted: that run is '
    'listed in agui.quarantine, and a failure is raised at the end. A thread that another '
    'transaction holds is postponed. Does nothing, with a notice, on a standby and while another '
    'agui.compact or pgagui job compact is in progress. Call it outside a transaction block, for '
    'example from pg_cron. Errors: UI023 the fold of a run exceeds a limit.';

-- role: worker; route: worker
create or replace procedure agui.repack(
    max_runs   int default null,
    max_time   interval default null,
    older_than interval default null
)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    next    pg_catalog.record;  -- the next run, of which a note is committed
    near    pg_catalog.uuid;    -- the last thread repacked
    first_no int;               -- the first of its runs
    piece   pg_catalog.record;
    after_seq bigint := 0;
    runs    int := 0;
    busy    pg_catalog.uuid[] := '{}';
    has_come_back boolean := false;
    failed  pg_catalog.text[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.repack does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    select null::uuid as thread_key, null::int as run_no into next;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('repack')) then
            -- the run is not begun
            perform agui_internal.take_back_attempt('repack', next.thread_key, array[next.run_no]);
            blocked := agui_internal.job_lock_problem('repack');
            if blocked is null then
                raise notice 'agui.repack stops: another agui.repack is in progress';
            end if;
            exit;
        end if;
        perform agui_internal.begin_step();
        if next.run_no is not null then
            first_no := least(first_no, next.run_no);
            begin
                select * into piece from agui_internal.repack_run(next.thread_key, next.run_no, after_seq);
                if piece.is_busy then
                    perform agui_internal.take_back_attempt('repack', next.thread_key, array[next.run_no]);
                    busy := busy || next.thread_key;
                elsif piece.next_seq is null then
                    perform agui_internal.note_success('repack', next.thread_key, array[next.run_no]);
                    runs := runs + 1;
                elsif pg_catalog.clock_timestamp() >= stop_at then
                    -- the next call continues from there
                    perform agui_internal.take_back_attempt('repack', next.thread_key, array[next.run_no]);
                    piece.next_seq := null;
                end if;
                after_seq := coalesce(piece.next_seq - 1, 0);
            exception
                when others then
                    raise warning 'agui.repack: thread with key %, run number %: %', next.thread_key, next.run_no, sqlerrm;
                    if not agui_internal.note_failure('repack', next.thread_key, sqlstate, sqlerrm, array[next.run_no]) then
                        busy := busy || next.thread_key;
                    end if;
                    after_seq := 0;
                    if sqlstate <> '55P03' then
                        failed := failed || pg_catalog.format('%s/%s', next.thread_key, next.run_no);
                        failure := coalesce(failure, sqlerrm);
                        code := coalesce(code, sqlstate);
                    end if;
            end;
        end if;

        if after_seq = 0 then
            near := next.thread_key;
            next.thread_key := null;
            if runs < max_runs is not false
                and (near is null and max_time > '0' or pg_catalog.clock_timestamp() < stop_at) is not false
            then
                select * into next from agui_internal.next_to_repack(near, older_than, busy, coalesce(next.run_no, 0));
                if next.run_no is null and busy <> '{}' and not has_come_back then
                    has_come_back := true;
                    busy := '{}';
                    select * into next from agui_internal.next_to_repack(near, older_than);
                end if;
            end if;
            if near is distinct from next.thread_key then
                begin
                    perform agui_internal.prune_snapshots(near, first_no);  -- its log is smaller now
                exception
                    when others then
                        raise warning 'agui.repack: snapshots of the thread with key %: %', near, sqlerrm;
                end;
                first_no := null;
            end if;
            exit when next.thread_key is null;
            perform agui_internal.note_attempt('repack', next.thread_key, array[next.run_no]);
        end if;
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.repack', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.repack: %s of the runs could not be repacked: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'All other runs are done. agui.quarantine says when the failed ones are retried; agui.retry lets the next call retry them at once.';
    end if;
    commit;
end
$$;

comment on procedure agui.repack is
    'Joins the batches of runs that ended at least older_than ago (null: '
    'agui_internal.repack_after()) into larger batches. Live batches of a few events take several '
    'times as much space. Reads and retried appends return the same as before. Commits every 50,000 '
    'events. Stops after max_runs or max_time (null: no limit), or in time before '
    'statement_timeout, also within a run, so it can be cancelled and called at any time. If a run '
    'fails, the others are still repacked: the run is listed in agui.quarantine, and the error is '
    'raised at the end. A thread that another transaction holds is postponed. Call it outside a '
    'transaction block.';

-- role: worker; route: worker
create or replace procedure agui.compact_running(every_events int default 1000, max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at   pg_catalog.timestamptz;
    candidate pg_catalog.record;
    failed    pg_catalog.text[] := '{}';
    failure   pg_catalog.text;
    code      pg_catalog.text;
    blocked   pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.compact_running does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    perform agui_internal.job_lock_id('compact_running');  -- fails if the role sees no runs
    perform agui_internal.forget_ended_runs('compact_running');
    for candidate in
        select run.thread_key, run.run_no
        from agui.run as run
        left join agui.snapshot as snapshot
            on snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no and snapshot.rules = agui_internal.rules()
        left join agui_internal.job_note as note
            on note.job = 'compact_running' and note.thread_key = run.thread_key and note.run_no = run.run_no
        cross join lateral (
            select coalesce(pg_catalog.sum(batch.n), 0) as n
            from agui.batch as batch
            where batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq > coalesce(snapshot.through_seq, run.first_seq - 1)
        ) as unfolded
        where run.status = 'running'
            and unfolded.n >= every_events
            and (note.next_at is null or note.next_at <= pg_catalog.clock_timestamp())
        order by coalesce(note.attempts, 0), run.thread_key, run.run_no
    loop
        exit when max_time <= '0';
        perform agui_internal.begin_step();
        perform agui_internal.note_attempt('compact_running', candidate.thread_key, array[candidate.run_no]);
        commit;
        set local search_path = pg_catalog, pg_temp;
        perform agui_internal.begin_step();
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('compact_running')) then
            perform agui_internal.take_back_attempt('compact_running', candidate.thread_key, array[candidate.run_no]);
            commit;
            set local search_path = pg_catalog, pg_temp;
            blocked := agui_internal.job_lock_problem('compact_running');
            if blocked is null then
                raise notice 'agui.compact_running stops: another agui.compact_running is in progress';
            end if;
            exit;
        end if;
        begin
            perform agui_internal.compact_running_run(candidate.thread_key, candidate.run_no, stop_at);
            perform agui_internal.note_success('compact_running', candidate.thread_key, array[candidate.run_no]);
        exception
            when others then
                raise warning 'agui.compact_running: thread with key %, run number %: %', candidate.thread_key, candidate.run_no, sqlerrm;
                perform agui_internal.note_failure('compact_running', candidate.thread_key, sqlstate, sqlerrm, array[candidate.run_no]);
                if sqlstate <> '55P03' then
                    failed := failed || pg_catalog.format('%s/%s', candidate.thread_key, candidate.run_no);
                    failure := coalesce(failure, sqlerrm);
                    code := coalesce(code, sqlstate);
                end if;
        end;
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() >= stop_at;
    end loop;

    perform agui_internal.refuse_blocked('agui.compact_running', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.compact_running: %s of the runs in progress got no snapshot: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The other runs have one. agui.quarantine says when the failed ones are retried.';
    end if;
    commit;
end
$$;

comment on procedure agui.compact_running is
    'Makes or renews the snapshot of every run in progress that received every_events events since '
    'its last one, so that a reload in the middle of a long run stays fast. Stops after max_time '
    '(null: no limit), or in time before statement_timeout, also within a long run: its snapshot '
    'then covers a part of it, and the next call continues from there. Commits after each run. '
    'Skips threads that another compactor holds. If a run fails, the others are still processed: '
    'the run is listed in agui.quarantine, and the error is raised at the end. Does nothing, with a '
    'notice, on a standby and while another call is in progress. Call it outside a transaction '
    'block. Errors: UI022 a run is in quarantine, UI023 the fold exceeds a limit.';

-- route: each node
create or replace procedure agui.grant_access()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    role       record;
    statement  text;
    left_to_do text[] := '{}';
begin
    for role in
        select *
        from (values
            ('agui_reader', null), ('agui_writer', 'agui_reader'), ('agui_worker', 'agui_reader'), ('agui_maintainer', 'agui_reader'),
            ('agui_recorder', null), ('agui_diagnoser', 'agui_reader')
        ) as role (name, member_of)
    loop
        statement := format('create role %I nologin', role.name);
        begin
            if to_regrole(role.name) is null then
                execute statement;
            end if;
        exception
            when duplicate_object or unique_violation then
                null;  -- another database of the server created it at the same time
            when insufficient_privilege then
                left_to_do := left_to_do || statement;
        end;

        continue when role.member_of is null;
        statement := format('grant %I to %I', role.member_of, role.name);
        begin
            if not pg_has_role(role.name, role.member_of, 'usage') then
                execute statement;
            end if;
        exception
            when unique_violation then
                null;
            when insufficient_privilege or undefined_object then
                left_to_do := left_to_do || statement;
        end;
    end loop;

    -- Like the roles, the settings are missing if only the schema was restored.
    perform agui_internal.define_settings();

    -- Including tables and functions that a migration has just created.
    perform agui_internal.set_row_security(
        exists (select from pg_policy where polrelid = 'agui.thread'::regclass and polname = 'agui_scope')
    );

    perform agui_internal.set_node((select node.name from agui_internal.node as node));

    foreach statement in array array(select agui_internal.privilege_changes()) loop
        execute statement;
    end loop;

    if left_to_do <> '{}' then
        raise warning using
            message = format('the roles of pgagui are incomplete, and %I lacks the privileges to complete them', current_user),
            hint = format('As a role with these privileges, run: %s; call agui.grant_access();', array_to_string(left_to_do, '; '));
    end if;
end
$$;

comment on procedure agui.grant_access is
    'Creates the roles agui_reader, agui_writer, agui_worker, agui_maintainer, agui_recorder '
    'and agui_diagnoser and their memberships if they are missing, and gives them and pg_monitor exactly the '
    'privileges on the objects of pgagui that they should have. Adds missing settings and, while '
    'row-level security is on, policies that tables lack. Raises a warning about what the caller '
    'may not do. The migrations call it, and so does "pgagui migrate up" if there is nothing to '
    'migrate, for example after a restore on another server.';

-- A run that cannot be folded has no texts.
-- role: worker; route: worker; never: UI022, UI023
create or replace procedure agui.project(max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
    failed  pg_catalog.int4;
    runs    pg_catalog.int4;
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.project does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    perform agui_internal.job_lock_id('project');  -- fails if the role sees no runs
    while agui_internal.apply_rules() operator(pg_catalog.>) 0 loop
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() operator(pg_catalog.>=) stop_at;
    end loop;
    loop
        perform agui_internal.begin_step();
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('project')) then
            blocked := agui_internal.job_lock_problem('project');
            if blocked is null then
                raise notice 'agui.project stops: another agui.project is in progress';
            end if;
            exit;
        end if;
        runs := agui_internal.project_step();
        if runs = 0 then
            runs := agui_internal.settle_calls();
        end if;
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when runs = 0 or pg_catalog.clock_timestamp() >= stop_at;
    end loop;
    perform agui_internal.refuse_blocked('agui.project', blocked);
    failed := (select pg_catalog.count(*) from agui_internal.job_note as note where note.job = 'project' and note.error is not null);
    if failed > 0 then
        raise warning 'agui.project: % runs have no facts yet; agui.quarantine says why', failed;
    end if;
    commit;
end
$$;

comment on procedure agui.project is
    'Keeps the facts about runs (agui.run_fact, agui.tool_fact, agui.interrupt_fact, '
    'agui.usage_fact): reads the runs that have ended or changed since the last call, in groups, '
    'and commits after each. The first call reads all runs. Stops after max_time (null: no limit), '
    'or in time before statement_timeout; one group is always done. A run that fails is listed in '
    'agui.quarantine and retried with backoff; the others are done. Does nothing, with a notice, on '
    'a standby and while another call is in progress. Call it outside a transaction block. Errors: '
    '42501 the role has not all scopes, 55P03 another role holds the lock of the job.';

-- role: worker; route: worker
create or replace procedure agui.reap(max_runs int default null, max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    keys    pg_catalog.uuid[];
    run_nos pg_catalog.int4[];
    at      int := 0;  -- the current run, of which a note is committed; 0: none yet
    runs    int := 0;
    failed  pg_catalog.text[] := '{}';
    failure pg_catalog.text;
    code    pg_catalog.text;
    blocked pg_catalog.text;  -- who holds the lock of the job, unless it is the same job in progress
begin
    if pg_catalog.pg_is_in_recovery() then
        raise notice 'agui.reap does nothing on a standby';
        return;
    end if;
    set local search_path = pg_catalog, pg_temp;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    perform agui_internal.job_lock_id('reap');  -- fails if the role sees no runs
    perform agui_internal.note_uptime(is_writer => false);
    perform agui_internal.forget_ended_runs('reap');
    perform agui_internal.forget_claims();
    commit;
    set local search_path = pg_catalog, pg_temp;
    while agui_internal.find_ends() operator(pg_catalog.>) 0 loop
        commit;
        set local search_path = pg_catalog, pg_temp;
        exit when pg_catalog.clock_timestamp() operator(pg_catalog.>=) stop_at;
    end loop;
    select pg_catalog.array_agg(stale.thread_key), pg_catalog.array_agg(stale.run_no)
    into keys, run_nos
    from agui_internal.stale_runs() as stale;
    loop
        exit when keys is null;
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('reap')) then
            perform agui_internal.take_back_attempt('reap', keys[at], array[run_nos[at]]);  -- the run is not begun
            blocked := agui_internal.job_lock_problem('reap');
            if blocked is null then
                raise notice 'agui.reap stops: another agui.reap is in progress';
            end if;
            exit;
        end if;
        -- As in agui_internal.begin_step. But the events that close a run are part of the log, so
        -- this commit waits for the disk as appends do.
        perform pg_catalog.set_config('lock_timeout', '200ms', true);
        if at > 0 then
            begin
                if agui_internal.reap_run(keys[at], run_nos[at]) is not null then
                    runs := runs + 1;
                    perform agui_internal.note_success('reap', keys[at], array[run_nos[at]]);
                else
                    perform agui_internal.take_back_attempt('reap', keys[at], array[run_nos[at]]);
                end if;
            exception
                when others then
                    raise warning 'agui.reap: thread with key %, run number %: %', keys[at], run_nos[at], sqlerrm;
                    perform agui_internal.note_failure('reap', keys[at], sqlstate, sqlerrm, array[run_nos[at]]);
                    if sqlstate <> '55P03' then
                        failed := failed || pg_catalog.format('%s/%s', keys[at], run_nos[at]);
                        failure := coalesce(failure, sqlerrm);
                        code := coalesce(code, sqlstate);
                    end if;
            end;
        end if;
        at := at + 1;
        exit when keys[at] is null or runs >= max_runs or pg_catalog.clock_timestamp() >= stop_at;
        perform agui_internal.note_attempt('reap', keys[at], array[run_nos[at]]);
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
    set local search_path = pg_catalog, pg_temp;

    perform agui_internal.refuse_blocked('agui.reap', blocked);
    if failure is not null then
        raise exception using
            errcode = code,
            message = pg_catalog.format('agui.reap: %s of the stale runs could not be closed: %s', pg_catalog.cardinality(failed), failure),
            detail = 'Their thread keys and run numbers: ' || pg_catalog.array_to_string(failed, ', '),
            hint = 'The others are closed. agui.quarantine says when the failed ones are retried; agui.verify shows what is wrong with a thread.';
    end if;
    commit;
end
$$;

comment on procedure agui.reap is
    'Closes the stale runs: those in progress without a sign of life (an event or agui.keep_alive) '
    'within the lease, which is the setting lease or heartbeat_lease (agui.setting). Appends the '
    'ends of what they left open, then a RUN_ERROR with the reason. A writer that returns late gets '
    'UI016. The lease counts only while writers can reach the server: after an outage each run has '
    'its full lease. Commits after each run and stops after max_runs or max_time (null: no limit), '
    'or in time before statement_timeout. If a run fails, the others are still closed: the run is '
    'listed in agui.quarantine, and the error is raised at the end. Call it outside a transaction '
    'block.';

-- role: maintainer; route: each node
create or replace function agui.rebuild_facts()
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('have all facts computed again');
    delete from agui_internal.projection;
end
$$;

comment on function agui.rebuild_facts is
    'Makes the next call of agui.project() read all runs, and replace what is stored of them. '
    'Until then the facts stay as they are. '
    'Errors: 42501 the role has not all scopes.';

-- It asks for the head, not for a run by its id.
-- role: maintainer; never: UI002
create or replace function agui.rebuild_snapshots(thread_id text, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key    uuid := agui_internal.key_to_change(thread_id, scope);
    damage agui.verify_row;
    next_no int;
    run_nos int[];
    last_old_no int;
    carried agui_internal.carried_fold;
begin
    -- As compactors do: a writer of snapshots holds the row of the thread.
    perform from agui.thread as thread where thread.thread_key = key for no key update;
    if not found then
        -- raises an error if there is no such thread, unless only its row is missing
        perform agui_internal.find_run(thread_id, null, scope, true);
    end if;

    select * into damage from agui_internal.verify_log(key) as found where found.severity = 'damage' limit 1;
    if found then
        raise exception using
            errcode = 'UI015',
            message = format('thread "%s": its snapshots are not rebuilt because its log is damaged: %s%s',
                thread_id, 'run "' || damage.run_id || '": ', damage.problem),
            hint = 'A snapshot may hold what the log has lost. First restore the log from a backup; agui.verify lists all damage.';
    end if;

    -- New message versions get numbers after the old ones, which are deleted at the end. Otherwise
    -- every search for the last number would pass all deleted rows.
    last_old_no := (select max(message.message_no) from agui.message_version as message where message.thread_key = key);
    delete from agui.snapshot as snapshot where snapshot.thread_key = key;
    update agui.run as run set n = null, log_bytes = null where run.thread_key = key and run.log_bytes is not null;
    for next_no in
        select run.run_no
        from agui.run as run
        where run.thread_key = key and run.status <> 'running'
        order by run.run_no
    loop
        continue when exists (
            select from agui.run as done where done.thread_key = key and done.run_no = next_no and done.log_bytes is not null
        );
        run_nos := (agui_internal.sequence_to_compact(key, next_no, 'infinity', fold_bytes => carried.bytes)).run_nos;
        carried := agui_internal.compact_sequence(key, run_nos, carried);
    end loop;
    delete from agui.message_version as message where message.thread_key = key and message.message_no <= last_old_no;
    delete from agui_internal.job_note as note where note.thread_key = key;
    perform agui_internal.rebuild_activity(key);
    perform agui_internal.fill_title(key);
    return (select count(*) from agui.snapshot as snapshot where snapshot.thread_key = key);
end
$$;

comment on function agui.rebuild_snapshots is
    'Deletes the snapshots and message versions of a thread, builds them from its log and returns '
    'the number of snapshots. The log is not changed. Also repairs the entry of the thread in '
    'lists. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key, UI015 the log is '
    'damaged, so nothing is changed, UI023 the fold exceeds a limit.';

-- role: worker; route: thread if named
create or replace function agui.retry(job text default null, thread_id text default null, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key     uuid := case when thread_id is not null then agui_internal.key_to_change(thread_id, scope) end;
    own     record;
    retried bigint;
    facts   bigint;
begin
    select * into own from agui_internal.own_keys();
    -- A run that has no facts is found by its note alone.
    update agui_internal.job_note as note
    set next_at = null
    where note.job = 'project' and (retry.job is null or note.job = retry.job)
        and (key is null or note.thread_key = key)
        and note.thread_key >= own.low
        and note.thread_key <= own.high;
    get diagnostics facts = row_count;
    delete from agui_internal.job_note as note
    where (retry.job is null or note.job = retry.job)
        and note.job <> 'project'
        and (key is null or note.thread_key = key)
        and (note.error is not null or note.attempts > 1)
        and note.thread_key >= own.low
        and note.thread_key <= own.high;
    get diagnostics retried = row_count;
    return retried + facts;
end
$$;

comment on function agui.retry is
    'Ends the wait of runs in agui.quarantine, so that the next call of a job (null: of every job) '
    'retries them at once: the runs of a thread, or (null) of all threads in the scopes of the '
    'role. Returns the number of entries. '
    'Errors: UI012 another thread has the same key.';

-- role: writer; route: thread
create or replace function agui.settle(thread_id text, max_time interval default '1 second', scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- As in each transaction of a job (agui_internal.begin_step), but only here: the caller may do more.
set lock_timeout = '200ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    -- A reload folds so much in about the time of a step.
    least_bytes constant int := 48 * 1024;
    key     constant uuid := agui_internal.key_to_change(thread_id, scope);
    stop_at constant timestamptz := agui_internal.stop_time(clock_timestamp() + max_time);
    run_nos int[] := agui_internal.inputs_to_split(key);
    next_no constant int := agui_internal.next_to_compact(key, 'infinity', coalesce(agui_internal.previous_tip(key), 0));
    next    record;
    carried agui_internal.carried_fold;
begin
    if (
        select coalesce(sum(coalesce(batch.text_bytes, pg_column_size(batch.events))), 0)
        from agui.run as run
        join agui.batch as batch on batch.thread_key = run.thread_key and batch.first_seq >= run.first_seq
        where run.thread_key = key and run.run_no = next_no
    ) + (
        select coalesce(sum(coalesce(pg_column_size(given.skeleton), given.bytes)), 0)
        from agui.run_input as given
        where given.thread_key = key and given.run_no = any (run_nos)
    ) < least_bytes then
        return true;
    elsif not agui_internal.hold_thread(key) then
        return false;
    end if;
    if run_nos is not null then
        perform agui_internal.split_thread_inputs(key, run_nos);
        run_nos := agui_internal.inputs_to_split(key);
    end if;
    if next_no is null then
        return run_nos is null;
    end if;
    select * into next from agui_internal.sequence_to_compact(key, next_no, 'infinity', fold_bytes => 2 * least_bytes);
    carried := agui_internal.compact_sequence(key, next.run_nos, stop_at => stop_at);
    perform agui_internal.fill_title(key);
    return run_nos is null and next.ends_thread and carried.is_cut is null;
end
$$;

comment on function agui.settle is
    'Compacts what has ended in one thread, so that its next reload is fast before the job runs. '
    'Writers call it behind the end of a run, in a transaction of its own. It does one step of '
    'agui.compact: up to 4 MB of inputs and about 96 KB of log, and of a longer run what max_time '
    'allows (null: no limit). It does nothing for less than 48 KB. Appends do not wait for it, and it '
    'does not wait for a job. Returns true if nothing worth a step is left, false if something is, or '
    'another transaction holds the thread: the next call or the job does the rest. Runs in '
    'agui.quarantine, and those that continue from them, are left to the job. An error leaves all as it was. '
    'Errors: UI012 another thread has the same key, UI023 the fold exceeds a limit.';

-- It asks for no run by its id, and a fold that ends is a problem that it names.
-- never: UI002, UI022, UI023
create or replace function agui.verify(thread_id text, scope text default '')
returns setof agui.verify_row
language plpgsql
stable
security definer
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid;
begin
    for key in
        select * from agui_internal.thread_keys(thread_id, scope)
    loop
        return query select * from agui_internal.verify_log(key);
        begin
            return query select * from agui_internal.verify_references(key);
        exception
            when others then
                return next (null, 'snapshots and messages cannot be read: ' || sqlerrm, 'damage')::agui.verify_row;
        end;
        return query select * from agui_internal.verify_snapshots(key);
    end loop;
    if not found then
        perform agui_internal.find_run(thread_id, null, scope, true);  -- raises an error if there is no such thread
    end if;
end
$$;

comment on function agui.verify is
    'Checks a thread for damage, as git fsck does for a repository: its log (seqs, batches, bounds '
    'and life cycles of runs), the tree of its runs, and every snapshot, compared with a fold of '
    'the raw log. Returns one row for each problem and no row if all is well. severity '
    'distinguishes damage from notes. Notes are events after the end of a run, a second or missing '
    'RUN_STARTED, and a RUN_STARTED that differs from what its writer gave. agui.rebuild_snapshots '
    'repairs damaged snapshots. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';
