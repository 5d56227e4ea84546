-- Claims of runs, and the end of runs whose writer is gone. The lease itself is in core/lease.
--
--   a run is alive:   it gave a sign of life, a batch or seen_at, within its lease
--   a run is stale:   agui.reap or the next run closes it: the ends of what is open (open_parts),
--                     then RUN_ERROR, and run.cut_off_reason. Its writer then gets UI016, unless it
--                     repeats what is stored.
--   a claim:          the place of a run before its first event (agui_internal.claim)
--
-- Nothing but signs of life tells a dead writer from a slow one: a lock for the time of a run would
-- not pass a pooler.
--
-- - There are two leases (lease_of). Heartbeats (agui.keep_alive) give the short one. A run whose
--   events still come when its heartbeats have ended has a writer that sends none, and the long
--   lease.
-- - The time in which no writer could reach the server does not count (reachable_since): it may
--   have started, recovered, or been promoted. Only agui.keep_alive and agui.reap write that row,
--   at most every 10 seconds. No run is cut off until one of them has seen a promotion. agui.append
--   reads this only if a run is in the way of the next one.
-- - A recorder calls agui.keep_alive before it repeats an append. So after an outage its own runs
--   cannot cut off those of others.
-- - The first event of an agent may come a minute after the call. So agui.claim_run first checks
--   what the beginning would check, determines the parent, and takes the place. The beginning
--   deletes the claim in its transaction, and takes over parent and stop request.
-- - A claim is a row of its own and no run. The log alone says which runs there are: a run without
--   events would be an exception in every read, and a hole in the numbers once it expires.
-- - While a claim is alive, no other run begins in the thread, unless one of them is parallel. Only
--   beginnings look for claims, tokens do not.
-- - An expired claim counts as none, is never revived, and is deleted by the next beginning or
--   claim in its way. Deleting decides: if a heartbeat renews the row meanwhile, the statement
--   examines it once more.
-- - A repeated claim is recognized by the hash of its input: UI009 for the same run, so that a
--   server can attach, UI007 for another.

create or replace function agui_internal.close_stale_runs(head agui.run, subject text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    other        agui.run;
    last_seen_at timestamptz;
    alive_until  timestamptz;
    now_at       timestamptz;
    any_closed   boolean := false;
begin
    if head.status <> 'running' and head.open_from = head.run_no then
        return false;
    end if;
    for other in
        select run.*
        from agui.run as run
        where run.thread_key = head.thread_key and run.status = 'running' and run.run_no >= head.open_from
        order by run.run_no
    loop
        last_seen_at := agui_internal.last_seen_at(other);
        alive_until := agui_internal.alive_until(other);
        now_at := clock_timestamp();
        if alive_until > now_at then
            raise exception using
                errcode = 'UI006',
                message = format('%s cannot begin: run "%s" is in progress in this thread', subject, other.run_id),
                detail = format(
                    'Its last sign of life was %s ago; without another one its lease ends in %s, at %s.',
                    date_trunc('milliseconds', now_at - last_seen_at), date_trunc('milliseconds', alive_until - now_at), alive_until
                ),
                hint = 'Wait until it has ended, request its writer to stop (agui.request_stop), end it if its writer is gone (agui.abandon), '
                    'or begin the run with parallel => true. After the lease the next run ends it.';
        elsif agui_internal.is_newly_promoted() then
            raise exception using
                errcode = 'UI006',
                message = format('%s cannot begin: run "%s" is in progress in this thread', subject, other.run_id),
                detail = format(
                    'Its last sign of life was %s ago, before this server was promoted: its lease begins with the next call of agui.keep_alive or agui.reap.',
                    date_trunc('milliseconds', now_at - last_seen_at)
                ),
                hint = 'A recorder calls agui.keep_alive. Without a recorder, call agui.reap(), or end the run if its writer is gone (agui.abandon).';
        end if;
        perform agui_internal.close_run(head.thread_key, other.run_no, format(
            'no sign of life for %s', agui_internal.lease_of(other.has_heartbeat, other.seen_at, last_seen_at)
        ));
        any_closed := true;
    end loop;
    return any_closed;
end
$$;

comment on function agui_internal.close_stale_runs is
    'Closes the runs of a thread whose lease has expired, so that the next run can begin. head is '
    'the run that began last. Returns whether it closed any. UI006: a run is still alive. The '
    'caller holds the lock of the thread.';

create or replace function agui_internal.find_claim(thread_key uuid, run_id text, parallel boolean, subject text)
returns agui_internal.claim
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    own   agui_internal.claim;
    other agui_internal.claim;
begin
    -- Deleting decides which claims have expired: if agui.keep_alive renews one at the same time,
    -- this statement waits for it and examines the claim once more.
    delete from agui_internal.claim as expired
    where expired.thread_key = find_claim.thread_key
        and agui_internal.claim_alive_until(expired.seen_at) <= clock_timestamp()
        and not agui_internal.is_newly_promoted();

    select * into own
    from agui_internal.claim as held
    where held.thread_key = find_claim.thread_key and held.run_id = find_claim.run_id;
    if own.run_id is not null or parallel then
        return own;
    end if;

    select * into other
    from agui_internal.claim as held
    where held.thread_key = find_claim.thread_key and not held.parallel
    limit 1;
    if found then
        raise exception using
            errcode = 'UI006',
            message = format('%s cannot begin: run "%s" is claimed in this thread and will begin', subject, other.run_id),
            detail = format('The claim was made at %s; without a call of agui.keep_alive its lease ends at %s.',
                other.claimed_at, agui_internal.claim_alive_until(other.seen_at)),
            hint = 'Wait until that run has ended, request it to stop (agui.request_stop), or begin the run with parallel => true.';
    end if;
    return own;
end
$$;

comment on function agui_internal.find_claim is
    'Returns the claim of a run that is about to begin or to be claimed; null: there is none. '
    'Deletes the claims of the thread whose lease has ended. UI006: another run is claimed, and '
    'neither the claim nor this run is parallel. The caller holds the lock of the thread.';

-- role: worker
create or replace function agui_internal.forget_claims()
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from agui_internal.claim as claim
    using agui_internal.own_keys() as own
    where claim.thread_key between own.low and own.high
        and agui_internal.claim_alive_until(claim.seen_at) < clock_timestamp() - interval '1 hour'
$$;

comment on function agui_internal.forget_claims is
    'Deletes the claims whose lease ended more than an hour ago. Expired claims have no effect; '
    'this removes those of threads in which nothing has begun since.';

create or replace function agui_internal.has_input(run agui.run, input json)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    stored_hash bytea;
    stored      text;
begin
    select given.hash into stored_hash
    from agui.input as given
    where given.thread_key = run.thread_key and given.run_no = run.run_no;
    if found then
        return stored_hash is not distinct from sha256(convert_to(input::text, 'UTF8'));
    end if;

    select agui_internal.json_unguard(event.input::text) into stored
    from agui_internal.batch_with(run.thread_key, run.first_seq) as batch
    cross join lateral rows from (
        json_to_recordset(agui_internal.json_guarded(batch.events)) as (type text, input json)
    ) with ordinality as event (type, input, position)
    where event.type = 'RUN_STARTED' and json_typeof(event.input) = 'object'
        and batch.first_seq + event.position - 1 = run.first_seq;
    return case
        when stored is null or input is null then stored is null and input is null
        else agui_internal.json_equal(stored, input::text)
    end;
end
$$;

comment on function agui_internal.has_input is
    'Whether a run began with this input (null: with none). An input that was given beside the '
    'events must have the same bytes. One in RUN_STARTED must have the same value, because agents '
    'write it anew.';

-- role: worker
create or replace function agui_internal.reap_run(thread_key uuid, run_no int)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    stale agui.run;
begin
    perform agui_internal.own_key(thread_key);
    -- If the lock is taken, its holder is appending to the thread. If that is the writer of another
    -- run, the next reap closes this one.
    if not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(reap_run.thread_key)) then
        return null;
    end if;
    perform agui_internal.lock_thread(reap_run.thread_key);
    select * into stale
    from agui.run as run
    where run.thread_key = reap_run.thread_key and run.run_no = reap_run.run_no and run.status = 'running';
    if not found or not agui_internal.is_stale(stale) or agui_internal.is_newly_promoted() then
        return null;
    end if;
    return agui_internal.close_run(stale.thread_key, stale.run_no, format(
        'no sign of life for %s', agui_internal.lease_of(stale.has_heartbeat, stale.seen_at, agui_internal.last_seen_at(stale))
    ));
end
$$;

comment on function agui_internal.reap_run is
    'Closes a run in progress without a sign of life within its lease, as agui_internal.close_run '
    'does, and returns its last seq. Null: it is alive, has ended, or its thread is being written '
    'to.';

create or replace function agui_internal.close_run(
    thread_key uuid,
    run_no     int,
    reason     text,
    imported   boolean default false,
    cancelled  boolean default false
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    because   text;
    closing   text;
    closing_n int;
    log_end   record;
    stamp     timestamptz;
begin
    because := case
        when cancelled then ',"message":' || to_json('The run was stopped: ' || reason) || ',"code":"RUN_STOPPED"}'
        else ',"message":' || to_json('The run was cut off: ' || reason) || ',"code":"RUN_CUT_OFF"}'
    end;

    -- Close what the run opened and did not end, innermost first. Each end names it by the field in
    -- named_by.
    select
        coalesce(string_agg(
            '{"type":"' || part.closes || '"'
                || coalesce(',"' || part.named_by || '":' || agui_internal.json_unguard(to_json(part.name)::text), '')
                || coalesce(',"subagentRunId":' || agui_internal.json_unguard(to_json(part.owner)::text), '')
                || case when part.closes = any (agui_internal.event_types('end subagent')) then because else '}' end,
            ',' order by part.opened_at desc
        ) || ',', ''),
        count(*) + 1
    into closing, closing_n
    from agui.run as run
    cross join lateral agui_internal.open_parts(run) as part
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    closing := '[' || closing || case
        when cancelled then (
            select '{"type":"RUN_FINISHED","threadId":' || to_json(thread.thread_id) || ',"runId":' || to_json(run.run_id)
                || ',"result":{"stopped":true,"reason":' || to_json(reason) || '},"outcome":{"type":"cancelled"}}'
            from agui.run as run
            join agui.thread as thread on thread.thread_key = run.thread_key
            where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no
        )
        else '{"type":"RUN_ERROR"' || because
    end || ']';

    select batch.first_seq + batch.n - 1 as last_seq, batch.recorded_at, batch.hash
    into log_end
    from agui.batch as batch
    where batch.thread_key = close_run.thread_key
    order by batch.first_seq desc
    limit 1;
    stamp := case when imported then log_end.recorded_at else greatest(log_end.recorded_at, clock_timestamp()) end;

    insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, hash)
    select
        run.thread_key, log_end.last_seq + 1, stamp, closing_n, run.run_no, closing::json,
        agui_internal.next_link(log_end.hash, log_end.last_seq + 1, closing_n, stamp, run.run_id, closing::json)
    from agui.run as run
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    update agui.run as run
    set status = case when cancelled then 'cancelled' else 'cut_off' end,
        last_seq = log_end.last_seq + closing_n, end_seq = log_end.last_seq + closing_n, ended_at = stamp,
        cut_off_reason = case when not cancelled then reason end,
        changed_in = pg_current_xact_id()
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    perform agui_internal.note_activity(thread_key, stamp);
    return log_end.last_seq + closing_n;
end
$$;

comment on function agui_internal.close_run is
    'Ends a run in progress whose writer is gone: appends the ends of the messages, tool calls, '
    'reasoning, steps and subagents that it left open, then RUN_ERROR with the reason, so that '
    'AG-UI clients still accept the log. cancelled: the run was requested to stop, so it ends with '
    'RUN_FINISHED, whose outcome is cancelled. Returns the last seq. imported: the end gets the time of '
    'the last event of the log. The caller holds the lock of the thread.';

create or replace function agui_internal.open_parts(run agui.run, until bigint default null)
returns setof agui_internal.open_part
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with event as (
        select
            batch.first_seq + field.position - 1 as seq,
            role.does,
            role.opens,
            role.fails as closes,
            role.named_by,
            json_build_object(
                'messageId', field."messageId", 'toolCallId', field."toolCallId", 'stepName', field."stepName", 'subagentRunId', field."subagentRunId"
            ) as names,
            -- A step is identified by its name and its subagent, the others by their id alone.
            case when role.part = 'step' then field."subagentRunId" end as owner,
            field.event
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui.batch as stored
            where stored.thread_key = run.thread_key
                and stored.run_no = run.run_no
                and stored.first_seq >= run.first_seq
                and (until is null or stored.first_seq <= until)
                -- Most batches contain only pieces. A type may be spelled with escapes.
                and (stored.events::text ~ '_(START|END|FINISHED|ERROR)' or strpos(stored.events::text, '\u00') > 0)
            offset 0
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events)
                as (type text, "messageId" text, "toolCallId" text, "stepName" text, "subagentRunId" text),
            json_array_elements(batch.events)
        ) with ordinality as field (type, "messageId", "toolCallId", "stepName", "subagentRunId", event, position)
        join agui_internal.event_roles() as role on role.type = field.type
        where role.does in ('start', 'end')
            and (until is null or batch.first_seq + field.position - 1 <= until)
    ),
    part as (
        select
            event.opens,
            event.closes,
            event.named_by,
            event.names ->> event.named_by as name,
            event.owner,
            max(event.seq) filter (where event.does = 'start') as opened_at,
            max(event.seq) filter (where event.does = 'end') as closed_at
        from event
        group by 1, 2, 3, 4, 5
    )
    select part.opens, part.closes, part.named_by, part.name, part.owner, part.opened_at, event.event
    from part
    join event on event.seq = part.opened_at
    where part.opened_at > coalesce(part.closed_at, 0)
    order by part.opened_at;
end
$$;

comment on function agui_internal.open_parts is
    'The messages, tool calls, reasoning, steps and subagents that a run has begun and not ended, '
    'up to a seq (null: so far), in the order in which they began. What chunks open is not '
    'included: it is in the fold.';
