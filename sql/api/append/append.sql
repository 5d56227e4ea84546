create or replace function agui.append(
    thread_id text,
    run_id    text,
    events    json,
    after_seq bigint default null,
    scope     text default '',
    parallel  boolean default false
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Only a writer that bypasses this function can come first while the lock is held.
    max_attempts constant int := 10;
    subject     text;
    key         uuid;
    call        agui_internal.event_inspection;
    last_seq    bigint;
    log_end     record;
    place       agui_internal.run_position;
    repeat      record;
    new_run_no  int;
    new_events  json;
    new_n       int;
    new_stamp   timestamptz;
begin
    if thread_id is null or thread_id = '' or run_id is null or run_id = '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'agui.append needs a thread id and a run id that are not empty, and a scope that is not null';
    end if;
    subject := format('run "%s" of thread "%s"', run_id, thread_id);
    if greatest(octet_length(run_id), octet_length(thread_id), octet_length(scope)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: thread id, run id and scope may be 1,024 bytes long at most', left(subject, 200));
    end if;

    -- A single token, as live streams bring them, is no news to the life cycle of its run, and is told from the rest without a query.
    if agui_internal.is_single_token_event(events) then
        call := row(1, false, null, null, null, null);
    else
        call := agui_internal.inspect_events(events, subject);
        -- call.run_id is guarded: there a backslash is written as an escape.
        if call.run_id <> replace(run_id, '\', '\u005c') then
            raise exception using
                errcode = 'UI009',
                message = format('%s: RUN_STARTED names another run, %s', subject, agui_internal.json_unguard(to_json(call.run_id)::text));
        end if;
    end if;

    key := agui.thread_key(scope, thread_id);

    -- The lock has a statement of its own: under READ COMMITTED the next statement then sees all that its last holder did.
    perform pg_advisory_xact_lock(agui_internal.thread_lock_id(key));
    if current_setting('transaction_isolation') <> 'read committed' then
        -- Here the snapshot may be older than the lock. Whoever rewrites batches updates this row, so an outdated snapshot gets
        -- 40001; batches appended since make the insert below get the same.
        perform from agui.thread where thread_key = key for no key update;
    end if;

    -- The next tokens of a run in progress take this one statement. What it does not append is for the loop below.
    if not call.starts and call.ended_by is null then
        insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
        select
            key, latest.first_seq + latest.n, greatest(latest.recorded_at, clock_timestamp()), call.n, run.run_no, append.events
        from agui.run as run
        cross join lateral (
            select batch.first_seq, batch.n, batch.recorded_at, batch.run_no
            from agui.batch as batch
            where batch.thread_key = key
            order by batch.first_seq desc
            limit 1
        ) as latest
        where run.thread_key = key
            and run.run_id = append.run_id
            and run.status = 'running'
            and exists (
                select from agui.thread as thread
                where thread.thread_key = key and thread.scope = append.scope and thread.thread_id = append.thread_id
            )
            and (after_seq is null or after_seq = latest.first_seq + latest.n - 1 and latest.run_no = run.run_no)
        on conflict do nothing
        returning batch.first_seq + batch.n - 1 into last_seq;
        if found then
            return last_seq;
        end if;
    end if;

    for attempt in 1 .. max_attempts loop
        -- Status and end of the log in one statement: read in two, a late write could slip in after the finish.
        select
            run.run_no, run.status, run.first_seq, run.cut_off_reason,
            coalesce(batch.first_seq + batch.n - 1, 0) as last_seq, batch.recorded_at, batch.run_no as last_run_no,
            thread.scope <> append.scope or thread.thread_id <> append.thread_id as is_another
        into log_end
        from (values (key)) as asked (thread_key)
        left join agui.thread as thread
            on thread.thread_key = asked.thread_key
        left join agui.run as run
            on run.thread_key = key and run.run_id = append.run_id
        left join lateral (
            select * from agui.batch where thread_key = key order by first_seq desc limit 1
        ) as batch on true;

        if log_end.is_another then
            perform agui_internal.checked_thread_key(thread_id, scope);  -- says so
        end if;
        new_events := events;
        new_n := call.n;

        if log_end.run_no is null then
            if log_end.recorded_at is null then
                perform agui_internal.refuse_erased(key, subject);
            end if;
            if after_seq > 0 then
                raise exception using
                    errcode = 'UI017',
                    message = format('%s is unknown, although the writer knows of its seq %s', subject, after_seq),
                    hint = 'The log was rewound, by a crash without synchronous_commit or by a failover. Append the run from its beginning.';
            end if;
            if not call.starts and not (call.ended_at is not distinct from 1 and call.ended_by = 'RUN_ERROR') then
                raise exception using
                    errcode = 'UI002',
                    message = format('%s is unknown: its first event must be RUN_STARTED', subject);
            end if;
            if not parallel and agui_internal.close_stale_runs(key, subject) then
                continue;  -- the end of the log has moved
            end if;
            place := agui_internal.resolve_parent(key, call.parent_run_id, subject);
            new_run_no := place.run_no;
        else
            -- A repeat comes before "already finished": what its writer lost may be the answer to the last call.
            repeat := null;
            if after_seq is not null and not (log_end.last_run_no = log_end.run_no and log_end.last_seq = after_seq) then
                select * into repeat
                from agui_internal.match_repeat(key, log_end.run_no, log_end.first_seq, after_seq, events, subject, log_end.cut_off_reason is not null);
                if repeat.n = call.n then
                    return repeat.last_seq;
                elsif repeat.n > 0 then
                    new_n := call.n - repeat.n;
                    select ('[' || string_agg(value::text, ',' order by position) || ']')::json
                    into new_events
                    from json_array_elements(events) with ordinality as element (value, position)
                    where position > repeat.n;
                end if;
            end if;
            if call.starts and new_n = call.n then
                raise exception using
                    errcode = 'UI009',
                    message = format('%s exists already (it is %s)', subject, log_end.status),
                    hint = 'A new run needs a new runId. To repeat a call whose answer was lost, give after_seq.';
            end if;
            if log_end.cut_off_reason is not null then
                raise exception using
                    errcode = 'UI016',
                    message = format('%s was cut off (%s): event %s of the call comes too late', subject, log_end.cut_off_reason, call.n - new_n + 1),
                    hint = 'It was taken for abandoned and ended. What its writer still has to say belongs to a new run.';
            end if;
            -- As clients have it, RUN_ERROR may follow RUN_FINISHED; but not once a run went on from here: a lineage never changes.
            if log_end.status <> 'running'
                and not (
                    log_end.status = 'finished' and call.ended_by is not distinct from 'RUN_ERROR' and new_n = 1
                    and not exists (select from agui.run as child where child.thread_key = key and child.parent_no = log_end.run_no)
                ) then
                raise exception using
                    errcode = 'UI005',
                    message = format('%s is already %s: the log takes no more events of it', subject, log_end.status),
                    hint = 'Events that come late belong to a new run.';
            end if;
            new_run_no := log_end.run_no;
        end if;

        new_stamp := greatest(log_end.recorded_at, clock_timestamp());
        insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
        values (key, log_end.last_seq + 1, new_stamp, new_n, new_run_no, new_events)
        on conflict do nothing;
        if not found then
            continue;
        end if;

        if log_end.run_no is null then
            perform agui_internal.ensure_thread(key, scope, thread_id);
            insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
            values (
                key, place.run_no, place.parent_no, run_id, agui_internal.status_after(call.ended_by),
                log_end.last_seq + 1,
                case when call.ended_by is not null then log_end.last_seq + new_n end,
                new_stamp,
                case when call.ended_by is not null then new_stamp end
            );
        elsif call.ended_by is not null then
            update agui.run as run
            set status = agui_internal.status_after(call.ended_by),
                last_seq = log_end.last_seq + new_n,
                ended_at = new_stamp,
                n = null,          -- a RUN_ERROR that follows RUN_FINISHED
                log_bytes = null   -- is compaction's to look at, too
            where run.thread_key = key and run.run_no = log_end.run_no;
        end if;
        return log_end.last_seq + new_n;
    end loop;

    raise exception using
        errcode = '40001',
        message = format('%s: other writers came first %s times', subject, max_attempts),
        hint = 'Something writes to agui.batch without agui.append. Repeat the call.';
end
$$;

comment on function agui.append(text, text, json, bigint, text, boolean) is
    'Appends a JSON array of AG-UI events to a run and returns the seq of the last one. RUN_STARTED begins the run (parentRunId names '
    'its parent; without one it follows the head), RUN_FINISHED or RUN_ERROR ends it. after_seq is the last seq that the writer knows '
    'of its run, 0 for none: events that the log has after it are compared, not stored again, so a call whose answer was lost can be '
    'repeated in batches of any size; null appends without that check. parallel lets the run begin beside others that are in progress. '
    'Errors: UI002 unknown run, UI003 unknown parent, UI004 parent in progress, UI005 run already ended, UI006 another run in progress, '
    'UI007 a repeat that differs, UI008 no array of events, UI009 run id in use or not that of RUN_STARTED, UI011 over a limit, UI014 the thread was erased, '
    'UI016 the run was cut off, UI017 the log lost what the writer knows of.';

revoke execute on function agui.append(text, text, json, bigint, text, boolean) from public;
