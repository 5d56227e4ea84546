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
                insert into agui.run_input (thread_key, run_no, input, hash, bytes, split_at)
                values (
                    key, place.run_no, append_events.input, sha256(input_bytes), octet_length(input_bytes),
                    case when octet_length(input_bytes) < agui_internal.least_input_to_split() then stored.began_at end
                );
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

comment on function agui_internal.append_events(text, text, json, bigint, json, text, boolean, boolean, text, boolean) is
    'Implements agui.append, except for its fast path. imported: the events took place in the '
    'past, at the times that they state.';

revoke execute on function agui_internal.append_events(text, text, json, bigint, json, text, boolean, boolean, text, boolean) from public;
