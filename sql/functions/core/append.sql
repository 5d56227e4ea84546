-- The rows that a call of agui.append, agui.append_many or agui.import_events writes.
--
-- An append stores the events of a call as one row of agui.batch, whose first seq is the last seq
-- of the thread plus one. So seq counts 1, 2, 3, … in commit order. The lock of the thread
-- (core/locks) makes this fair; the primary key (thread_key, first_seq) makes it correct: if
-- another writer is first nevertheless, "on conflict do nothing" notices, and the call starts from
-- the beginning.
--
--   next_place           The fast path: the next events of a run in progress, recognized by how
--                        their text begins (core/inspect), take one look-up and one insert.
--   append_events        Everything else: the life cycle of the run, its parent, claim and input.
--   match_repeat         A writer says by after_seq what it has seen of its run. What the log has
--                        behind that is compared byte for byte and not stored a second time.
--   insert_imported      Events with times of their own. A batch spans 30 minutes at most, because
--                        earlier_us is an array of int.
--   refuse_log_change    The triggers that keep others from changing a batch or an input.
--
-- - The lock is taken in a statement of its own. A later statement, whose snapshot is younger,
--   reads the status of the run and the end of the log together.
-- - Any role can take an advisory lock, so no call waits for one longer than 5 seconds. A lock of
--   the row would need a privilege, but costs each append WAL, and a new thread has no row.
-- - Events stay the text that came. Append reads their life cycle only, in guarded text
--   (core/json).
-- - A call takes a bounded multiple of its size (TestMemoryOfLargeCalls in jobs). So checks search
--   bytes, plans are generic, and of a large event only some members are read.
--
-- Agents break the protocol. The log keeps what the writer cannot have meant otherwise; `strict`
-- refuses it:
-- - Events after an end are accepted in the call that brings the end, and later with after_seq,
--   while the run has no child and was not cut off. The run stays ended, last_seq and ended_at
--   move, and the jobs process it once more.
-- - What follows RUN_ERROR has no effect until a RUN_STARTED. status and end_seq are the error's.
-- - A second RUN_STARTED needs after_seq, or the call that begins the run. It never changes the
--   parent.
-- - With after_seq 0 a run may begin with any event. Without it that is a mistake in the run id.
--
-- A parent beside the events takes precedence over RUN_STARTED. An input beside them applies at the
-- first RUN_STARTED, or before the first event (agui_internal.input_places). A later RUN_STARTED
-- would move it, so such a run without one gets no snapshot. Jobs store inputs in parts
-- (upkeep/inputs), so readers use the view agui.input, never the table.

create or replace function agui_internal.append_events(
    thread_id text,
    run_id    text,
    events    json,
    after_seq bigint,
    input     json,
    parent_run_id text,
    parallel  boolean,
    strict    boolean,
    scope     text,
    imported  boolean
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- Plans for the values of a call would have copies of its events.
set plan_cache_mode = force_generic_plan
as $$
declare
    -- While the lock is held, only a writer that bypasses this function can come first.
    max_attempts constant int := 10;
    subject     text := format('run "%s" of thread "%s"', run_id, thread_id);
    key         uuid;
    call        agui_internal.event_inspection;
    log_end     record;
    head        agui.run;
    claim       agui_internal.claim;
    given_parent text;  -- beside the events
    place       agui_internal.run_position;
    repeat      record;
    child_id    text;
    new_run_no  int;
    new_events  json;  -- null: all events of the call, which are not copied
    new_n       int;
    ends_now    boolean;  -- whether the new events end the run
    end_offset  int;      -- how many events of the call follow its last end
    input_bytes bytea;  -- the text of the input
    beginning   bytea;  -- chain_beginning of the run; null: the run has begun already
    stamp       timestamptz;
    stored      record;
begin
    perform agui_internal.inspect_ids(thread_id, run_id, scope, 'agui.append');
    call := agui_internal.inspect_events(events, thread_id, run_id, subject);
    if input is not null then
        perform agui_internal.inspect_input(input, events, subject);
    end if;
    if strict then
        perform agui_internal.refuse_disorder(call, subject);
    end if;
    -- A live agent may report that another run was cut off. An imported run was cut off itself.
    if not imported then
        call.cut_off_reason := null;
    elsif call.cut_off_reason is not null then
        call.status := 'cut_off';
    end if;
    end_offset := call.n - call.ends_at;

    key := agui.thread_key(scope, thread_id);
    perform agui_internal.lock_thread(key);

    for attempt in 1 .. max_attempts loop
        -- Read the status and the end of the log in one statement. With two statements, a late
        -- write could come in after the end of the run.
        select
            run.run_no, run.status, run.first_seq, run.cut_off_reason, run.asks,
            coalesce(batch.first_seq + batch.n - 1, 0) as last_seq, batch.recorded_at, batch.hash, batch.run_no as last_run_no,
            thread.scope <> append_events.scope or thread.thread_id <> append_events.thread_id as is_another_thread,
            -- Whether any run of the thread is claimed. Only a beginning needs to know.
            case when run.run_no is null then exists (select from agui_internal.claim as held where held.thread_key = key) end as is_claimed
        into log_end
        from (values (key)) as requested (thread_key)
        left join agui.thread as thread
            on thread.thread_key = requested.thread_key
        left join agui.run as run
            on run.thread_key = key and run.run_id = append_events.run_id
        left join lateral (
            select * from agui.batch where thread_key = key order by first_seq desc limit 1
        ) as batch on true;

        if log_end.is_another_thread then
            perform agui_internal.checked_thread_key(thread_id, scope);  -- raises the error
        end if;
        new_events := null;
        new_n := call.n;
        beginning := null;

        if log_end.run_no is null then
            if log_end.recorded_at is null then
                perform agui_internal.refuse_erased(key, subject);
            end if;
            if after_seq > 0 then
                raise exception using
                    errcode = 'UI017',
                    message = format('%s is unknown, although after_seq is %s: a new run begins with 0', subject, after_seq),
                    hint = 'Pass after_seq => 0 with the first call of a run. If the run has been appended to before, the log was rewound, by a '
                        'crash without synchronous_commit or by a failover: append the run from its beginning.';
            end if;
            if not imported and (call.begins_with is null or call.begins_unnamed) then
                perform agui_internal.refuse_misnamed(events, subject);
            end if;
            if coalesce(call.begins_with, '') not in ('RUN_STARTED', 'RUN_ERROR') and (after_seq is null or strict) then
                raise exception using
                    errcode = 'UI002',
                    message = format('%s is unknown: its first event must be RUN_STARTED', subject),
                    hint = 'If the agent really begins its run with another event, pass after_seq => 0, without strict.';
            end if;
            select * into head
            from agui.run as run
            where run.thread_key = key
            order by run.run_no desc
            limit 1;
            given_parent := parent_run_id;
            claim := null;
            if log_end.is_claimed then
                claim := agui_internal.find_claim(key, run_id, coalesce(parallel, false), subject);
            end if;
            -- The claim was made when no other run was in progress. What has begun since is
            -- parallel.
            if claim.run_id is not null then
                given_parent := coalesce(given_parent, claim.parent_run_id, '');
            elsif not coalesce(parallel, false) and agui_internal.close_stale_runs(head, subject) then
                continue;  -- the end of the log has moved
            end if;
            place := agui_internal.resolve_parent(head, key, coalesce(replace(given_parent, '\', '\u005c'), call.parent_run_id), subject);
            new_run_no := place.run_no;
            if log_end.hash is null and agui_internal.is_chained(scope) then
                log_end.hash := agui_internal.chain_origin(scope, thread_id);
            end if;
            input_bytes := agui_internal.json_bytes(input);
            if log_end.hash is not null then
                beginning := agui_internal.chain_beginning(key, place.parent_no, sha256(input_bytes));
            end if;
        else
            -- Check for a repeat before the checks for ended runs: the lost answer may be that of
            -- the last call.
            repeat := null;
            if after_seq is not null and not (log_end.last_run_no = log_end.run_no and log_end.last_seq = after_seq) then
                select * into repeat
                from agui_internal.match_repeat(key, log_end.run_no, log_end.first_seq, after_seq, events, subject, log_end.cut_off_reason is not null);
                new_n := call.n - repeat.n;
            end if;
            if after_seq is null and (call.begins_with = 'RUN_STARTED' or call.restarts_at is not null)
                or strict and call.begins_with = 'RUN_STARTED' and new_n = call.n
            then
                raise exception using
                    errcode = 'UI009',
                    message = case
                        when call.begins_with = 'RUN_STARTED' then format('%s exists already (it is %s)', subject, log_end.status)
                        else format('%s: event %s of the call is a RUN_STARTED, but the run has already begun', subject, call.restarts_at)
                    end,
                    detail = case when call.begins_with = 'RUN_STARTED' then '' else format('{"event": %s}', call.restarts_at) end,
                    hint = 'Use a new runId for a new run. To repeat a call whose answer was lost, pass after_seq.';
            end if;
            if after_seq <= 0 or input is not null or parent_run_id is not null then
                perform agui_internal.match_beginning(key, log_end.run_no, after_seq, input, parent_run_id, subject);
            end if;
            if new_n = 0 then
                return repeat.last_seq;
            end if;
            if new_n < call.n then
                select ('[' || string_agg(value::text, ',' order by position) || ']')::json
                into new_events
                from json_array_elements(events) with ordinality as element (value, position)
                where position > repeat.n;
            end if;
            if log_end.cut_off_reason is not null then
                raise exception using
                    errcode = 'UI016',
                    message = format('%s was cut off (%s): event %s of the call is too late', subject, log_end.cut_off_reason, call.n - new_n + 1),
                    detail = format('{"event": %s}', call.n - new_n + 1),
                    hint = 'The run counted as abandoned and was ended. Append the remaining events as a new run.';
            end if;
            if log_end.status <> 'running' then
                select child.run_id into child_id
                from agui.run as child
                where child.thread_key = key and child.parent_no = log_end.run_no
                limit 1;
                if found then
                    raise exception using
                        errcode = 'UI005',
                        message = format('%s is already %s, and run "%s" continues from it: the log accepts no more events of it',
                            subject, log_end.status, child_id),
                        hint = 'A lineage never changes. Append late events as a new run.';
                end if;
                -- An agent may continue after the end if its writer has seen the end. As in the
                -- official client, RUN_ERROR may follow RUN_FINISHED.
                if (after_seq is null or strict)
                    and not (log_end.status <> 'failed' and coalesce(call.status in ('failed', 'cut_off'), false) and new_n = 1)
                then
                    raise exception using
                        errcode = 'UI005',
                        message = format('%s is already %s: the log accepts no more events of it', subject, log_end.status),
                        hint = 'Append late events as a new run. If the agent really continues after its end, pass after_seq, without strict.';
                end if;
            end if;
            new_run_no := log_end.run_no;
        end if;

        ends_now := coalesce(call.ends_at > call.n - new_n, false);
        -- RUN_ERROR was the end, unless a RUN_STARTED has opened the run again.
        if log_end.asks and call.is_finish then
            call.status := 'interrupted';
        end if;
        if ends_now and log_end.status in ('failed', 'cut_off') and (call.reopens_at < call.ends_at) is not true then
            ends_now := agui_internal.is_open_again(key, log_end.run_no);
        end if;
        if imported then
            select * into stored
            from agui_internal.insert_imported(
                key, new_run_no, log_end.last_seq, log_end.recorded_at, coalesce(new_events, events), log_end.hash, append_events.run_id, beginning
            );
        else
            stamp := greatest(log_end.recorded_at, clock_timestamp());
            if log_end.hash is not null then
                new_events := agui_internal.chain_events(coalesce(new_events, events));
            end if;
            insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, text_bytes, hash)
            values (
                key, log_end.last_seq + 1, stamp, new_n, new_run_no, coalesce(new_events, append_events.events),
                agui_internal.text_bytes_to_store(coalesce(new_events, append_events.events)),
                case
                    when log_end.hash is not null then agui_internal.next_link(
                        log_end.hash, log_end.last_seq + 1, new_n, stamp, append_events.run_id, coalesce(new_events, append_events.events), coalesce(beginning, '\x00')
                    )
                end
            )
            on conflict do nothing
            returning batch.first_seq + batch.n - 1 as last_seq, batch.recorded_at as began_at, batch.recorded_at as ended_at
            into stored;
        end if;
        if stored.last_seq is null then
            continue;
        end if;

        if log_end.run_no is null then
            perform agui_internal.ensure_thread(key, scope, thread_id, stored.began_at);
            insert into agui.run (
                thread_key, run_no, parent_no, parent_given, run_id, status, first_seq, last_seq, end_seq, started_at, ended_at, seen_at,
                has_heartbeat, open_from, stop_requested_at, stop_reason, cut_off_reason, changed_in, asks
            )
            values (
                key, place.run_no, place.parent_no, given_parent is not null, run_id, coalesce(call.status, 'running'),
                log_end.last_seq + 1,
                case when ends_now then stored.last_seq end,
                case when ends_now then stored.last_seq - end_offset end,
                stored.began_at,
                case when ends_now then stored.ended_at end,
                -- Without it, the next run would treat an imported run as abandoned. The writer of a
                -- claimed run sends heartbeats, also if it dies before the first one.
                case when (imported or claim.run_id is not null) and not ends_now then clock_timestamp() end,
                claim.run_id is not null,
                place.open_from,
                claim.stop_requested_at,
                claim.stop_reason,
                call.cut_off_reason,
                pg_current_xact_id(),
                nullif(call.asks, false)
            );
            if log_end.is_claimed then
                delete from agui_internal.claim as held where held.thread_key = key and held.run_id = append_events.run_id;
            end if;
            if input is not null then
                perform agui_internal.store_input(key, place.run_no, append_events.input, input_bytes, stored.began_at);
            end if;
            perform agui_internal.note_run_begun(
                key, case when ends_now then stored.ended_at else stored.began_at end, coalesce(new_events, events), input
            );
        elsif ends_now or log_end.status <> 'running' then
            update agui.run as run
            set status = case when ends_now then call.status else run.status end,
                end_seq = case when ends_now then stored.last_seq - end_offset else run.end_seq end,
                cut_off_reason = case when ends_now then call.cut_off_reason else run.cut_off_reason end,
                asks = nullif(coalesce(call.asks, run.asks), false),
                last_seq = stored.last_seq,
                ended_at = stored.ended_at,
                changed_in = pg_current_xact_id(),
                -- Compaction and agui.repack must process the run a second time, with the events
                -- after its end.
                n = null,
                log_bytes = null,
                repacked_at = null
            where run.thread_key = key and run.run_no = log_end.run_no;
            perform agui_internal.note_activity(key, stored.ended_at);
        elsif imported or call.asks is distinct from coalesce(log_end.asks, false) and call.asks is not null then
            update agui.run as run
            set seen_at = case when imported then clock_timestamp() else run.seen_at end,
                asks = nullif(coalesce(call.asks, run.asks), false)
            where run.thread_key = key and run.run_no = log_end.run_no;
        end if;
        return stored.last_seq;
    end loop;

    raise exception using
        errcode = '40001',
        message = format('%s: other writers came first %s times', subject, max_attempts),
        hint = 'Another program writes to agui.batch without agui.append. Repeat the call.';
end
$$;

comment on function agui_internal.append_events is
    'Implements agui.append, except for its fast path. imported: the events took place in the '
    'past, at the times that they state.';

create or replace function agui_internal.refuse_disorder(call agui_internal.event_inspection, subject text)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if call.restarts_at is not null then
        raise exception using
            errcode = 'UI009',
            message = format('%s: event %s of the call is a RUN_STARTED, but a run has only one, as its first event', subject, call.restarts_at),
            detail = format('{"event": %s}', call.restarts_at),
            hint = 'Append the events of each run in a separate call.';
    end if;
    if call.late_at is not null then
        raise exception using
            errcode = 'UI005',
            message = format('%s: event %s of the call comes after the end of the run', subject, call.late_at),
            detail = format('{"event": %s}', call.late_at),
            hint = 'Append late events as a new run. Without strict they are accepted.';
    end if;
    if call.other_thread is not null then
        raise exception using
            errcode = 'UI021',
            message = format('%s: RUN_STARTED names another thread, %s', subject, agui_internal.quoted_id(call.other_thread)),
            hint = 'Append to the thread that the events belong to. Without strict they are accepted.';
    end if;
end
$$;

comment on function agui_internal.refuse_disorder is
    'Raises the errors of a strict call that the call itself shows. UI005: an event after the end '
    'of the run; UI009: a RUN_STARTED that is not the first event; UI021: a RUN_STARTED with the '
    'id of another thread.';

create or replace function agui_internal.resolve_parent(head agui.run, thread_key uuid, parent_run_id text, subject text)
returns agui_internal.run_position
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    parent agui.run;
    place  agui_internal.run_position;
begin
    if parent_run_id is null then
        parent := head;
    elsif parent_run_id <> '' then
        -- The name is guarded because it comes from an event: a backslash is an escape, and so are
        -- characters that no run id can have. The first condition finds the run by index, the
        -- second confirms it.
        select * into parent
        from agui.run as run
        where run.thread_key = resolve_parent.thread_key
            and run.run_id = replace(parent_run_id, '\u005c', '\')
            and replace(run.run_id, '\', '\u005c') = parent_run_id;
        if not found then
            raise exception using
                errcode = 'UI003',
                message = format('%s: its parent %s is not a run of this thread', subject, agui_internal.quoted_id(parent_run_id)),
                hint = 'Append the parent first, or name no parent to continue from the head.';
        end if;
    end if;

    if parent.status = 'running' then
        raise exception using
            errcode = 'UI004',
            message = format('%s: its parent "%s" is still in progress', subject, parent.run_id),
            hint = 'The parent of a run must have ended, so that a lineage never changes. Name an earlier run as the parent.';
    end if;

    place.run_no := coalesce(head.run_no, 0) + 1;
    place.parent_no := parent.run_no;
    place.open_from := place.run_no;
    if head.status = 'running' or head.open_from < head.run_no then
        select run.run_no into place.open_from
        from agui.run as run
        where run.thread_key = resolve_parent.thread_key and run.status = 'running' and run.run_no >= head.open_from
        order by run.run_no
        limit 1;
        place.open_from := coalesce(place.open_from, place.run_no);
    end if;
    return place;
end
$$;

comment on function agui_internal.resolve_parent is
    'Determines the place of a new run in the tree of its thread: its number and its parent (null: '
    'the head; '''': none). head is the run begun last. UI003: the parent is unknown; UI004: the '
    'parent is in progress. The caller holds the lock of the thread.';

create or replace function agui_internal.match_repeat(
    thread_key uuid,
    run_no     int,
    run_first_seq bigint,
    after_seq  bigint,
    events     json,
    subject    text,
    cut_off    boolean,
    out n        int,
    out last_seq bigint
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    given_n    int := json_array_length(events);
    differs_at bigint;
    run_last_seq bigint;
begin
    with stored as (
        select row_number() over (order by seq) as position, seq, event
        from (
            select batch.first_seq + element.position - 1 as seq, element.value::text as event
            from agui_internal.batches_behind(match_repeat.thread_key, after_seq) as batch
            cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
            where batch.run_no = match_repeat.run_no
                and batch.first_seq >= run_first_seq
                and batch.first_seq + element.position - 1 > after_seq
            order by batch.first_seq, element.position
            limit given_n
        ) as tail
    )
    select count(stored.seq), max(stored.seq), min(given.position) filter (where given.value::text <> stored.event)
    into n, last_seq, differs_at
    from json_array_elements(events) with ordinality as given (value, position)
    left join stored using (position);

    if differs_at is not null and cut_off then
        -- From here on, the log has the events that were appended on behalf of the writer. The
        -- caller refuses the remaining events of the writer.
        n := differs_at - 1;
    elsif differs_at is not null then
        raise exception using
            errcode = 'UI007',
            message = format('%s: event %s of the call differs from the event in the log after seq %s', subject, differs_at, after_seq),
            detail = format('{"event": %s}', differs_at),
            hint = 'A repeated call must have the same events, byte for byte. Check whether another writer writes to this run.';
    elsif n = 0 and after_seq > 0 then
        select batch.first_seq + batch.n - 1
        into run_last_seq
        from agui.batch as batch
        where batch.thread_key = match_repeat.thread_key and batch.run_no = match_repeat.run_no
        order by batch.first_seq desc
        limit 1;
        if run_last_seq <> after_seq then
            raise exception using
                errcode = 'UI017',
                message = format('%s ends at seq %s, but the writer has seen seq %s', subject, run_last_seq, after_seq),
                hint = 'after_seq must be the seq that the last call for this run returned. If it is, the log was rewound, by a crash without '
                    'synchronous_commit or by a failover: append the events after the seq at which it ends.';
        end if;
    end if;
end
$$;

comment on function agui_internal.match_repeat is
    'Returns how many of the given events the log of the run already has after a seq, and the seq '
    'of the last of them. Events are compared byte for byte, whatever batches they were appended '
    'in. UI007: they differ, unless the run was cut off; UI017: the run ends before that seq.';

create or replace function agui_internal.match_beginning(
    thread_key uuid,
    run_no     int,
    after_seq  bigint,
    input      json,
    parent_run_id text,
    subject    text
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    stored_hash   bytea;
    stored_parent text;
begin
    if after_seq <= 0 then
        select given.hash into stored_hash
        from agui.input as given
        where given.thread_key = match_beginning.thread_key and given.run_no = match_beginning.run_no;
        if stored_hash is distinct from sha256(convert_to(input::text, 'UTF8')) then
            raise exception using
                errcode = 'UI007',
                message = format('%s: %s', subject, case
                    when input is null then 'it was begun with an input, but the call brings none'
                    when stored_hash is null then 'it was begun without an input, but the call brings one'
                    else 'the input of the call differs from the input that the run began with'
                end),
                hint = 'A call that repeats the beginning of a run must have the same input, byte for byte. Check whether another writer writes to this run.';
        end if;
    elsif input is not null then
        raise exception using
            errcode = 'UI008',
            message = format('%s has already begun: an input comes only with the call that begins a run', subject),
            hint = 'To repeat that call, pass 0 as the seq that it comes after.';
    end if;

    if parent_run_id is not null then
        select coalesce(parent.run_id, '') into stored_parent
        from agui.run as run
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        where run.thread_key = match_beginning.thread_key and run.run_no = match_beginning.run_no;
        if stored_parent <> parent_run_id then
            raise exception using
                errcode = 'UI007',
                message = format('%s: the call names %s as its parent, it was begun with %s', subject,
                    case when parent_run_id = '' then 'no run' else '"' || parent_run_id || '"' end,
                    case when stored_parent = '' then 'none' else '"' || stored_parent || '"' end),
                hint = 'The parent of a run never changes. Check whether another writer writes to this run.';
        end if;
    end if;
end
$$;

comment on function agui_internal.match_beginning is
    'Compares the input and the parent of a call with those that the run began with. UI007: they '
    'differ; UI008: the call has an input and is no repeat of the beginning.';

create or replace function agui_internal.is_open_again(thread_key uuid, run_no int)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select event.type = 'RUN_STARTED'
        from agui_internal.life_cycle(thread_key, run_no) as event
        where not event.is_late
        order by event.seq desc
        limit 1
    );
end
$$;

comment on function agui_internal.is_open_again is
    'Whether a RUN_STARTED has followed the last end of a run, so that the next end counts.';

create or replace function agui_internal.insert_imported(
    thread_key  uuid,
    run_no      int,
    after_seq   bigint,
    recorded_at timestamptz,
    events      json,
    previous    bytea,
    run_id      text,
    beginning   bytea,
    out last_seq bigint,
    out began_at timestamptz,
    out ended_at timestamptz
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A longer span needs a new batch, because earlier_us is an int.
    max_span constant interval := '30 minutes';
    last_at  constant timestamptz := greatest(clock_timestamp(), insert_imported.recorded_at);
    n        bigint := 0;
    batch    record;
    hash     bytea := previous;
begin
    for batch in
    with event as materialized (  -- materialized: otherwise each of the windows below would parse the times
        select
            element.position,
            element.payload::text as payload,
            case when stated.at >= agui_internal.earliest_time() then stated.at end as told
        from rows from (
            json_to_recordset(agui_internal.json_guarded(events)) as (timestamp json),
            json_array_elements(events)
        ) with ordinality as element (told, payload, position)
        cross join lateral (
            select case
                -- The usual spelling. The function takes several times as long.
                when element.told::text ~ '^[0-9]{13}$' then timestamptz 'epoch' + element.told::text::bigint * interval '1 millisecond'
                else agui_internal.json_timestamp(element.told)
            end as at
            offset 0
        ) as stated
    ),
    -- An event without a time gets the time of the event before it or, at the beginning of a
    -- thread, of the event after it.
    dated as (
        select
            event.position,
            event.payload,
            least(last_at, coalesce(
                greatest(insert_imported.recorded_at, max(event.told) over (order by event.position)),
                first_value(event.told) over (order by event.told is null, event.position),
                last_at
            )) as at
        from event
    )
    select
        after_seq + min(dated.position) as first_seq,
        count(*)::int as n,
        max(dated.at) as recorded_at,
        '[' || string_agg(dated.payload, ',' order by dated.position) || ']' as events,
        array_agg(dated.at order by dated.position) as times
    from (
        select dated.*, div(extract(epoch from dated.at - min(dated.at) over ()), extract(epoch from max_span)) as span
        from dated
    ) as dated
    group by dated.span
    order by 1
    loop
        if previous is not null then
            hash := agui_internal.chain_link(
                hash, batch.first_seq, batch.n, agui_internal.chain_times(batch.times), run_id,
                coalesce(case when n = 0 then beginning end, '\x00'), batch.events::json
            );
        end if;
        insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, text_bytes, earlier_us, hash)
        values (
            insert_imported.thread_key, batch.first_seq, batch.recorded_at, batch.n, insert_imported.run_no, batch.events::json,
            octet_length(batch.events),
            case
                when batch.times[1] < batch.recorded_at then (
                    select array_agg((extract(epoch from batch.recorded_at - event.at) * 1000000)::int order by event.position)
                    from unnest(batch.times) with ordinality as event (at, position)
                )
            end,
            hash
        )
        on conflict do nothing;
        exit when not found;
        n := n + batch.n;
        last_seq := batch.first_seq + batch.n - 1;
        began_at := coalesce(began_at, batch.times[1]);
        ended_at := batch.recorded_at;
    end loop;

    if n > 0 and n < json_array_length(events) then
        raise exception using
            errcode = '40001',
            message = format('thread key %s: another writer came first', thread_key),
            hint = 'Another program writes to agui.batch without agui.append. Repeat the call.';
    end if;
end
$$;

comment on function agui_internal.insert_imported is
    'Writes events to the log after after_seq with the times that they state (timestamp), unless they '
    'are before agui_internal.earliest_time(). These '
    'times never decrease, are never below recorded_at and never in the future. previous, run_id '
    'and beginning are arguments for agui_internal.chain_link. last_seq is null if another writer '
    'came first. The caller holds the lock of the thread.';

create or replace function agui_internal.ensure_thread(
    thread_key uuid,
    scope      text,
    thread_id  text,
    created_at timestamptz default clock_timestamp()
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    kept agui.thread;
begin
    -- Loops only if another transaction creates or erases the row at the same time.
    loop
        select * into kept from agui.thread as thread where thread.thread_key = ensure_thread.thread_key for key share;
        exit when found;
        perform agui_internal.refuse_scope_collision(scope);
        insert into agui.thread (thread_key, scope, thread_id, created_at)
        values (ensure_thread.thread_key, ensure_thread.scope, ensure_thread.thread_id, ensure_thread.created_at)
        on conflict do nothing;
        if found then
            return true;
        end if;
    end loop;
    if kept.scope <> scope or kept.thread_id <> thread_id then
        perform agui_internal.checked_thread_key(thread_id, scope);  -- raises the error
    end if;
    return false;
end
$$;

comment on function agui_internal.ensure_thread is
    'Creates the row of a thread, with created_at, if it is missing, and protects it from erasure '
    'until the transaction ends. Returns whether it created the row. Raises UI012 if the key '
    'belongs to another thread or scope.';

create or replace function agui_internal.next_place(thread_key uuid, scope text, thread_id text, run_id text, after_seq bigint)
returns table (run_no int, first_seq bigint, recorded_at timestamptz, hash bytea)
language sql
stable
parallel safe
-- A single statement, so that it is inlined.
begin atomic
    select run.run_no, latest.first_seq + latest.n, latest.recorded_at, latest.hash
    from (
        select thread.scope, thread.thread_id
        from agui.thread as thread
        where thread.thread_key = next_place.thread_key
        limit 1
    ) as thread
    cross join lateral (
        -- Not by the index of runs in progress: it may be full of entries of runs that have ended
        -- since.
        select run.run_no, run.status
        from agui.run as run
        where run.thread_key = next_place.thread_key and run.run_id = next_place.run_id
        limit 1
    ) as run
    cross join lateral (
        select batch.first_seq, batch.n, batch.recorded_at, batch.run_no, batch.hash
        from agui.batch as batch
        where batch.thread_key = next_place.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest
    where run.status = 'running'
        and thread.scope = next_place.scope
        and thread.thread_id = next_place.thread_id
        -- The seqs of a call must end below this value. A larger one would fail a call of
        -- agui.append_many as a whole (22003); the slow path fails only the call at fault.
        and latest.first_seq < 9223372036854775807 - 4294967296
        and (
            next_place.after_seq is null
            or next_place.after_seq = latest.first_seq + latest.n - 1 and latest.run_no = run.run_no
        );
end;

comment on function agui_internal.next_place is
    'Returns the position of the next events of a run in progress, the time that they must not '
    'precede, and the hash of the last link. Returns no row if further checks are needed: another '
    'run, a possible repeat, or a key that belongs to another thread.';

create or replace function agui_internal.refuse_log_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Only agui_internal.repack_run, split_input and erase_thread set this. They check what they
    -- change and have the rights of the owner. Another role can set it too, but only the owner and
    -- superusers have the privilege to truncate.
    if tg_level = 'ROW' and current_setting('agui.log_change', true) = 'on' and has_table_privilege(tg_relid, 'truncate') then
        return coalesce(new, old);
    end if;
    raise exception using
        errcode = 'UI010',
        message = format('%s on agui.%s is refused: the log is append-only', tg_op, tg_table_name),
        hint = 'To correct a run, append a new one. To remove a whole thread, call agui.erase.';
end
$$;

comment on function agui_internal.refuse_log_change is
    'Trigger: refuses changes to the log and to the tree of runs with UI010, so that no statement '
    'can destroy history by accident.';

create or replace trigger refuse_change
    before update or delete on agui.batch
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.batch
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update of thread_key, run_no, parent_no, parent_given, run_id, first_seq or delete on agui.run
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.run
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update or delete on agui.run_input
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.run_input
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update or delete on agui.input_part
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.input_part
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update of thread_key, scope, thread_id or delete on agui.thread
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.thread
    for each statement execute function agui_internal.refuse_log_change();
