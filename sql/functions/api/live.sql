-- role: writer
create or replace function agui.abandon(
    thread_id text,
    run_id    text,
    reason    text default 'its writer is gone',
    imported  boolean default false,
    cancelled boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.key_to_change(thread_id, scope);
    run agui.run;
begin
    perform agui_internal.lock_thread(key);
    run := agui_internal.find_run(thread_id, run_id, scope, true);
    if run.status <> 'running' then
        return run.last_seq;
    end if;
    return agui_internal.close_run(key, run.run_no, coalesce(nullif(reason, ''), 'its writer is gone'), coalesce(imported, false), coalesce(cancelled, false));
end
$$;

comment on function agui.abandon is
    'Ends a run in progress whose writer will not return: its status is then cut_off. Appends the '
    'ends of its open messages, tool calls, reasoning, steps and subagents, then a RUN_ERROR with the '
    'reason. Returns the last seq of the run. A run that has ended is left unchanged. imported => '
    'true, for a run that took place in the past (agui.import_events), gives the end the time of its '
    'last event and not the current time. cancelled => true, for a writer that ends its run because '
    'it was requested to stop: the end is RUN_FINISHED with the outcome cancelled. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.attach(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    shape     text default 'snapshot',
    scope     text default ''
)
returns agui.attachment
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (agui_internal.attach_at(thread_id, run_id, at_seq, at_time, after_seq, shape, scope, 'head', 1, 2147483647)).answer;
end
$function$;

comment on function agui.attach is
    'Returns all that a server needs to show a conversation and to continue it live, as of one '
    'point in time: the history of the lineage of a run (null: the head), and the position to '
    'follow from. agui.poll(array[thread_id], array[seq], array[recorded_at]) then returns what '
    'follows, of all runs of the thread. Messages, calls and steps that are open at the position '
    'stay open in the history, so the next events continue them. Shape snapshot: as agui.replay '
    'returns it, with the CUSTOM events of the run, 100 in 1 MiB at most; it also works for a client that has seen a part of the history. Shape stream: the '
    'compacted stream (agui.compact_events). Shape events: the events themselves, from after_seq '
    'on, those of thinking as the events of reasoning that they mean. With at_seq or at_time the history and the position end there, at the earlier of the two. '
    'A thread that does not exist yet has no run, no events and position 0. running names the '
    'other runs in progress; their events are not in the history. '
    'Errors: UI001 unknown thread, where a run or after_seq is given, UI002 unknown run, UI008 '
    'invalid arguments, UI012 another thread has the same key, UI013 unknown shape, or one that '
    'does not allow after_seq, UI017 the log ends before after_seq, UI022 a run is in quarantine, '
    'UI023 the fold exceeds a limit.';

-- It has one shape, and begins at the beginning.
-- never: UI013, UI017
create or replace function agui.attach_part(
    thread_id  text,
    run_id     text default null,
    at_seq     bigint default null,
    part       int default 1,
    part_bytes int default 8388608,
    customs_of text default 'head',
    scope      text default ''
)
returns agui.attachment_part
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    found record;
begin
    if part is null or part < 1 or part_bytes is null or part_bytes < 1024 then
        raise exception using
            errcode = 'UI008',
            message = format('attach to thread "%s": part is %s and part_bytes %s', thread_id, coalesce(part::text, 'null'), coalesce(part_bytes::text, 'null')),
            hint = 'Parts count from 1. A part has 1024 bytes or more.';
    elsif customs_of is null or customs_of not in ('none', 'head', 'lineage') then
        raise exception using
            errcode = 'UI008',
            message = format('attach to thread "%s": customs_of is %s', thread_id, coalesce('"' || customs_of || '"', 'null')),
            hint = 'Use "none", "head" or "lineage".';
    end if;
    found := agui_internal.attach_at(thread_id, run_id, at_seq, null, 0, 'snapshot', scope, customs_of, part, part_bytes);
    return (found.answer, found.next_part)::agui.attachment_part;
end
$function$;

comment on function agui.attach_part is
    'Returns one part of what agui.attach returns in shape snapshot, and the number of the next part '
    '(null: this is the last one), for clients that take no event of any size and servers with little memory. Each part has part_bytes '
    'at most, unless one message or value of the state is larger. Read part 1 first; for the others name '
    'the run and the seq that it returned. A client that applies all parts in their order has exactly the '
    'stored messages and state. If one of them is larger than the official client takes in an event '
    '(10 MiB), the last part ends with RUN_ERROR, whose code is MESSAGE_TOO_LARGE, STATE_TOO_LARGE or '
    'MESSAGE_NOT_SENT. customs_of: the runs whose CUSTOM events the last part repeats, none, head (the run) '
    'or lineage; the last 100 in 1 MiB, and pgagui.left_out counts the others. A question (on_interrupt) '
    'that is answered is not repeated. '
    'Errors: UI001 unknown thread, where a run is given, UI002 unknown run, UI008 invalid arguments, UI012 '
    'another thread has the same key, UI022 a run is in quarantine, UI023 the fold exceeds a limit.';

-- role: writer
create or replace function agui.claim_run(
    thread_id text,
    run_id    text,
    claimant  text,
    input     json default null,
    parent_run_id text default null,
    parallel  boolean default false,
    scope     text default ''
)
returns agui.run_claim
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key        constant uuid := agui_internal.own_thread_key(scope, thread_id);
    subject    constant text := format('run "%s" of thread "%s"', run_id, thread_id);
    input_hash constant bytea := sha256(convert_to(input::text, 'UTF8'));
    head       agui.run;
    existing   agui.run;
    place      agui_internal.run_position;
    claim      agui_internal.claim;
begin
    perform agui_internal.inspect_ids(thread_id, run_id, scope, 'agui.claim_run');
    if claimant is null or claimant = '' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: the claimant must not be empty', subject),
            hint = 'Pass a random text, and the same one when the call is repeated.';
    end if;
    if octet_length(claimant) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the claimant is limited to 1,024 bytes', subject);
    end if;
    if input is not null then
        perform agui_internal.inspect_input(input, '[]', subject);
    end if;
    parallel := coalesce(parallel, false);

    perform agui_internal.lock_thread(key);
    perform agui_internal.checked_thread_key(thread_id, scope);

    select * into existing
    from agui.run as run
    where run.thread_key = key and run.run_id = claim_run.run_id;
    if found then
        if not agui_internal.has_input(existing, input) then
            raise exception using
                errcode = 'UI007',
                message = format('%s exists already (it is %s), with another input', subject, existing.status),
                hint = 'Use a new runId for a new run.';
        end if;
        raise exception using
            errcode = 'UI009',
            message = format('%s exists already (it is %s)', subject, existing.status),
            hint = 'Follow that run, or use a new runId for a new run.';
    end if;

    claim := agui_internal.find_claim(key, run_id, parallel, subject);
    if claim.run_id is not null then
        if claim.input_hash is distinct from input_hash
            or claim.claimant = claimant and (
                claim.parallel <> parallel or parent_run_id <> coalesce(claim.parent_run_id, '')
            )
        then
            raise exception using
                errcode = 'UI007',
                message = case
                    when claim.claimant <> claimant then format('%s is claimed with another input', subject)
                    else format('%s is claimed already, and the repeated call has another input, parent or parallel', subject)
                end,
                hint = 'Use a new runId for a new run. A repeated call must have the same arguments.';
        end if;
        if claim.claimant <> claimant then
            raise exception using
                errcode = 'UI009',
                message = format('%s is claimed already and will begin', subject),
                detail = format('Without a call of agui.keep_alive its lease ends at %s.', agui_internal.claim_alive_until(claim.seen_at)),
                hint = 'Follow that run, or use a new runId for a new run.';
        end if;
    else
        loop
            select * into head
            from agui.run as run
            where run.thread_key = key
            order by run.run_no desc
            limit 1;
            -- A closed run may be the head.
            exit when parallel or not agui_internal.close_stale_runs(head, subject);
        end loop;
        if head.run_no is null then
            perform agui_internal.refuse_erased(key, subject);
            perform agui_internal.refuse_scope_collision(scope);
        end if;
        place := agui_internal.resolve_parent(head, key, replace(parent_run_id, '\', '\u005c'), subject);
        insert into agui_internal.claim (thread_key, run_id, parent_run_id, input_hash, parallel, claimant, claimed_at, seen_at)
        values (
            key, claim_run.run_id,
            (select parent.run_id from agui.run as parent where parent.thread_key = key and parent.run_no = place.parent_no),
            input_hash, claim_run.parallel, claim_run.claimant, clock_timestamp(), clock_timestamp()
        )
        returning * into claim;
    end if;
    return row(claim.run_id, claim.parent_run_id, claim.parallel, claim.claimed_at, agui_internal.claim_alive_until(claim.seen_at));
end
$$;

comment on function agui.claim_run is
    'Takes the place of a run that will begin, for a writer that calls an agent and gets the first '
    'event later. Until then no other run begins in the thread, unless it or the claim is '
    'parallel. Determines the parent; parent_run_id is as in agui.append (null: the head, '''': '
    'none). The call of agui.append that begins the run ends the claim, and the run gets the '
    'parent of the claim unless that call gives one. claimant is a random text of the process: a '
    'call whose answer was lost can be repeated with the same one. The lease of a claim is the '
    'setting heartbeat_lease, and agui.keep_alive renews it. After the lease the claim counts as '
    'none. A claim is no run: agui.claims alone shows it. If the run id is in use, the errors tell '
    'a repeated request, which can follow the run (UI009), from another one (UI007). '
    'Errors: UI003 unknown parent, UI004 the parent is in progress, UI006 another run is in '
    'progress or claimed, UI007 the run id is in use with another input, UI008 an empty id or '
    'claimant, or an input that is not an object, UI009 the run id is in use with the same input, '
    'UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the thread was '
    'erased.';

create or replace function agui.claims(thread_id text, scope text default '')
returns setof agui.run_claim
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.checked_thread_key(thread_id, scope);
begin
    return query
    select claim.run_id, claim.parent_run_id, claim.parallel, claim.claimed_at, agui_internal.claim_alive_until(claim.seen_at)
    from agui_internal.claim as claim
    where claim.thread_key = key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
    order by claim.claimed_at, claim.run_id;
end
$$;

comment on function agui.claims is
    'Returns the runs of a thread that are claimed and have not begun (agui.claim_run), as long as '
    'the lease of their claim lasts. No row: there is none, or no such thread. '
    'Errors: UI012 another thread has the same key.';

create or replace function agui.get_agent_error(thread_id text, run_id text default null, scope text default '')
returns table (status int, content_type text, body bytea, recorded_at timestamptz)
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    run agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    if has_table_privilege(agui_internal.checked_caller_role(), 'agui.agent_error', 'select') then
        return query
        select kept.status, kept.content_type, kept.body, kept.recorded_at
        from agui.agent_error as kept
        where kept.thread_key = run.thread_key and kept.run_no = run.run_no;
    end if;
end
$$;

comment on function agui.get_agent_error is
    'Returns what the agent of a run (null: the head) answered in place of a stream of events, as agui.keep_agent_error '
    'kept it: one row or none. Only roles with agui_diagnoser get it; others get no row. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

-- role: writer
create or replace function agui.keep_agent_error(
    thread_id    text,
    run_id       text,
    status       int,
    content_type text,
    body         bytea,
    scope        text default ''
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.key_to_change(thread_id, scope);
    run agui.run;
begin
    -- An erasure in progress ends first.
    perform from agui.thread as thread where thread.thread_key = key for key share;
    run := agui_internal.find_run(thread_id, run_id, scope, needs_thread => true);
    insert into agui.agent_error (thread_key, run_no, status, content_type, body, recorded_at)
    values (
        run.thread_key, run.run_no, coalesce(keep_agent_error.status, 0), coalesce(left(keep_agent_error.content_type, 200), ''),
        coalesce(substr(keep_agent_error.body, 1, 4096), ''), clock_timestamp()
    )
    on conflict on constraint agent_error_pkey do update
    set status = excluded.status,
        content_type = excluded.content_type,
        body = excluded.body,
        recorded_at = excluded.recorded_at;
end
$$;

comment on function agui.keep_agent_error is
    'Keeps with a run (null: the head) what its agent answered in place of a stream of events: the status, the content '
    'type and the first 4,096 bytes of the body, whatever bytes they are. It is not a part of the log. A second call '
    'replaces it. agui.get_agent_error returns it. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

-- role: writer, recorder; route: threads
create or replace function agui.keep_alive(
    thread_ids text[],
    run_ids    text[],
    detach     boolean default false,
    scopes     text[] default null
)
returns setof agui.keep_alive_row
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due_before timestamptz := clock_timestamp() - agui_internal.heartbeat_lease() / 3;
    item       record;
    run        agui.run;
    claim      agui_internal.claim;
    signal     agui.keep_alive_row;
begin
    if cardinality(thread_ids) is distinct from cardinality(run_ids) or cardinality(thread_ids) <> cardinality(scopes) then
        raise exception using
            errcode = 'UI008',
            message = 'agui.keep_alive: all arrays must have one item for each run';
    end if;
    if agui_internal.has_row_security() then
        perform agui_internal.own_thread_key(requested.scope, '')
        from (select distinct coalesce(named.scope, '') as scope from unnest(thread_ids, scopes) as named (thread_id, scope)) as requested;
    end if;
    if agui_internal.this_node() is not null then
        perform agui_internal.refuse_moved(json_agg(agui_internal.place_of_thread(
            agui.thread_key(coalesce(named.scope, ''), named.thread_id), coalesce(named.scope, ''), named.thread_id
        )))
        from unnest(thread_ids, scopes) as named (thread_id, scope)
        where agui_internal.fenced_node_of(agui.thread_key(coalesce(named.scope, ''), named.thread_id)) <> agui_internal.this_node();
    end if;
    perform agui_internal.note_uptime(is_writer => true);
    -- One run at a time: each is found by its key, whatever row count the planner expects.
    for item in
        select
            agui.thread_key(coalesce(requested.scope, ''), requested.thread_id) as thread_key, coalesce(requested.scope, '') as scope, requested.thread_id,
            requested.run_id, requested.call_no
        from unnest(thread_ids, run_ids, scopes) with ordinality as requested (thread_id, run_id, scope, call_no)
    loop
        -- Another thread may have the key. Its runs are not reported: they were refused when they
        -- began.
        select requested.* into run
        from agui.run as requested
        join agui.thread as thread on thread.thread_key = requested.thread_key
        where requested.thread_key = item.thread_key
            and requested.run_id = item.run_id
            and thread.scope = item.scope
            and thread.thread_id = item.thread_id;
        if not found then
            -- The beginning of the run may not be committed yet: then the lease begins with it.
            select held.* into claim
            from agui_internal.claim as held
            where held.thread_key = item.thread_key and held.run_id = item.run_id;
            continue when not found;
            if not detach and claim.seen_at < due_before then
                -- An expired claim stays expired: another run may have begun since. A locked row is
                -- being deleted by the beginning of the run, or changed by a stop request.
                update agui_internal.claim as due
                set seen_at = clock_timestamp()
                from (
                    select held.thread_key, held.run_id
                    from agui_internal.claim as held
                    where held.thread_key = item.thread_key
                        and held.run_id = item.run_id
                        and agui_internal.claim_alive_until(held.seen_at) > clock_timestamp()
                    for no key update skip locked
                ) as alive
                where due.thread_key = alive.thread_key and due.run_id = alive.run_id;
            end if;
            if claim.stop_requested_at is not null then
                signal := row(item.call_no, 'claimed', claim.stop_requested_at, claim.stop_reason, null);
                return next signal;
            end if;
            continue;
        end if;
        if run.status = 'running' and detach then
            update agui.run as left_alone
            set seen_at = clock_timestamp(), has_heartbeat = false
            where left_alone.thread_key = run.thread_key and left_alone.run_no = run.run_no and left_alone.has_heartbeat;
        elsif run.status = 'running' and (not run.has_heartbeat or run.seen_at < due_before) then
            -- A locked row is being written by the writer of the run, or by a transaction that ends
            -- the run.
            perform from agui.run as due where due.thread_key = run.thread_key and due.run_no = run.run_no for no key update skip locked;
            if found then
                update agui.run as due
                set seen_at = clock_timestamp(), has_heartbeat = true
                where due.thread_key = run.thread_key and due.run_no = run.run_no;
            end if;
        end if;
        if run.status <> 'running' or run.stop_requested_at is not null then
            signal := row(item.call_no, run.status, run.stop_requested_at, run.stop_reason, run.cut_off_reason);
            return next signal;
        end if;
    end loop;
end
$$;

comment on function agui.keep_alive is
    'Sends heartbeats for the runs that a process writes to. Returns a row for each run that '
    'should stop or has ended, and none for the others. Call it about once a second for all runs '
    'of the process, and first of all after an outage: leases count only while writers can reach '
    'the server. From the first call on, the lease of a run is the setting heartbeat_lease. detach '
    '=> true hands the run over to another writer, and its lease becomes the setting lease. A run '
    'that is claimed and has not begun (agui.claim_run) is passed in the same arrays: the call '
    'renews its claim, and returns a row with the status claimed if the run should stop. A call '
    'writes only if an update is due: once in a third of heartbeat_lease. '
    'Errors: UI008 invalid arguments, UI027 another node of the cluster has threads of the call, and '
    'no run of it was kept alive.';

-- It returns these errors, for each thread.
-- role: reader, recorder; route: threads; never: UI012, UI014, UI017
create or replace function agui.poll(
    thread_ids  text[],
    after_seqs  bigint[],
    after_times timestamptz[] default null,
    max_rows    int default 100,
    page_bytes  int default 16777216,
    scopes      text[] default null
)
returns setof agui.poll_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    is_standby boolean := pg_is_in_recovery();
    own        record;
    batch      record;
    size       bigint;
    room       bigint := page_bytes;
    is_begun   boolean := false;
    cut        int[] := '{}';  -- the threads with more events than fit
begin
    select * into own from agui_internal.own_keys();
    if cardinality(thread_ids) is distinct from cardinality(after_seqs)
        or cardinality(thread_ids) <> cardinality(after_times) or cardinality(thread_ids) <> cardinality(scopes)
    then
        raise exception using
            errcode = 'UI008',
            message = 'agui.poll: all arrays must have one item for each thread';
    end if;

    for batch in
    with followed as materialized (
        select
            item.thread_no::int, key.thread_key, item.after_seq, holder.first_seq, holder.n,
            case
                when agui_internal.this_node() is not null and agui_internal.node_of(key.thread_key) <> agui_internal.this_node() then 'UI027'
                -- Checked once for each follower: a follower that has already seen events passed
                -- the check before.
                when item.after_seq <= 0 then (
                    select 'UI012'
                    from agui.thread as thread
                    where thread.thread_key = key.thread_key and (thread.scope <> item.scope or thread.thread_id <> item.thread_id)
                )
                when holder.first_seq is null and agui_internal.erased_at(key.thread_key) is not null then 'UI014'
                when holder.first_seq is null or holder.first_seq + holder.n - 1 < item.after_seq then
                    -- A standby may not have received these events yet.
                    case when not is_standby then 'UI017' end
                when item.after_time <> agui_internal.event_time(holder.recorded_at, holder.earlier_us[item.after_seq - holder.first_seq + 1]) then 'UI017'
            end as problem
        from (
            select thread_id, greatest(after_seq, 0) as after_seq, after_time, coalesce(scope, '') as scope, thread_no
            from unnest(thread_ids, after_seqs, after_times, scopes) with ordinality
                as item (thread_id, after_seq, after_time, scope, thread_no)
        ) as item
        cross join lateral (select agui.thread_key(item.scope, item.thread_id) as thread_key offset 0) as derived
        -- A thread of another scope counts as missing.
        cross join lateral (
            select case when derived.thread_key >= own.low and derived.thread_key <= own.high then derived.thread_key end as thread_key
            offset 0
        ) as key
        -- The batch that contains after_seq. That event must still be the one that the follower has
        -- seen.
        left join lateral agui_internal.batch_with(key.thread_key, item.after_seq) as holder on true
    )
    select
        followed.thread_no,
        followed.problem,
        unseen.first_seq,
        unseen.n,
        unseen.run_no,
        unseen.recorded_at,
        unseen.earlier_us,
        unseen.events,
        unseen.text_bytes,
        greatest(followed.after_seq - unseen.first_seq + 1, 0)::int as seen,
        run.run_id,
        run.status
    from followed
    left join lateral (
        select stored.*, row_number() over (order by stored.first_seq) as place
        from (
            select *
            from agui.batch as stored
            where stored.thread_key = followed.thread_key
                and stored.first_seq > case
                    when followed.first_seq + followed.n - 1 > followed.after_seq then followed.first_seq - 1
                    else followed.after_seq
                end
            order by stored.first_seq
            limit max_rows
        ) as stored
    ) as unseen on followed.problem is null
    left join lateral (
        select run.run_id, run.status
        from agui.run as run
        where run.thread_key = followed.thread_key and run.run_no = unseen.run_no
        offset 0
    ) as run on true
    where followed.problem is not null or unseen.first_seq is not null
    -- Return the first batch of each thread before the second of any. If not all batches fit, no
    -- thread is starved by its neighbours.
    order by unseen.place, followed.thread_no
    loop
        continue when batch.thread_no = any (cut);
        if batch.problem is not null then
            return next (batch.thread_no, null, null, null, null, null, null, null, batch.problem)::agui.poll_row;
            continue;
        end if;
        size := agui_internal.batch_bytes(batch.events, batch.text_bytes);
        if is_begun and size > room then
            cut := cut || batch.thread_no;
            return next (batch.thread_no, null, null, null, null, null, null, null, null)::agui.poll_row;
            continue;
        end if;
        is_begun := true;
        room := room - size;
        if batch.seen > 0 then
            batch.earlier_us := batch.earlier_us[batch.seen + 1 :];
            batch.events := (
                select ('[' || string_agg(element.value::text, ',' order by element.position) || ']')::json
                from json_array_elements(batch.events) with ordinality as element (value, position)
                where element.position > batch.seen
            );
        end if;
        return next (
            batch.thread_no, batch.run_id, batch.status, batch.first_seq + batch.seen, batch.n - batch.seen, batch.recorded_at,
            batch.earlier_us, batch.events, null
        )::agui.poll_row;
    end loop;
end
$$;

comment on function agui.poll is
    'Returns the new events of the threads that a process follows: for each thread all events '
    'after the last seq that the process has seen (0: none), of all runs, in order. Limits: '
    'max_rows rows (batches) for each thread and page_bytes of events in total, but always at '
    'least one row. If a thread has more events than fit, its last row has only thread_no; put '
    'this thread first in the next call. after_times gives the recorded_at of the last seen '
    'events. With it, a log that was rewound by a crash or a failover is always detected (problem '
    'UI017), even if it has grown since. A thread that does not exist yet returns no row. Works on '
    'standbys and through connection poolers. '
    'Errors: UI008 arrays of different lengths.';

-- role: writer
create or replace function agui.release_claim(thread_id text, run_id text, claimant text, scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.key_to_change(thread_id, scope);
begin
    perform agui_internal.lock_thread(key);
    delete from agui_internal.claim as claim
    where claim.thread_key = key
        and claim.run_id = release_claim.run_id
        and claim.claimant = release_claim.claimant;
    return found;
end
$$;

comment on function agui.release_claim is
    'Gives up a claim (agui.claim_run), so that another run can begin. Returns whether there was '
    'one of this claimant; false is no error, so the call can be repeated. '
    'Errors: UI012 another thread has the same key.';

-- role: writer
create or replace function agui.request_stop(
    thread_id text,
    run_id    text default null,
    reason    text default null,
    scope     text default ''
)
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key    constant uuid := agui_internal.key_to_change(thread_id, scope);
    claims int;
    runs   int;
begin
    -- Writers update rows of runs under this lock. Without it, a writer that ends several runs in a
    -- different order could deadlock with this function.
    perform agui_internal.lock_thread(key);
    update agui_internal.claim as claim
    set stop_requested_at = coalesce(claim.stop_requested_at, clock_timestamp()),
        stop_reason = coalesce(claim.stop_reason, nullif(reason, ''))
    where claim.thread_key = key
        and (request_stop.run_id is null or claim.run_id = request_stop.run_id)
        and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp();
    get diagnostics claims = row_count;
    if claims = 0 then
        perform agui_internal.find_run(thread_id, run_id, scope, true);  -- raises the error if there is none
    end if;
    update agui.run as run
    set stop_requested_at = coalesce(run.stop_requested_at, clock_timestamp()),
        stop_reason = coalesce(run.stop_reason, nullif(reason, ''))
    where run.thread_key = key
        and (request_stop.run_id is null or run.run_id = request_stop.run_id)
        and run.status = 'running';
    get diagnostics runs = row_count;
    return claims + runs;
end
$$;

comment on function agui.request_stop is
    'Requests the writer of a run to stop; without a run id, the writers of all runs of the thread '
    'that are in progress or claimed (agui.claim_run), in any process. A writer receives the '
    'request with its next call of agui.keep_alive. Returns how many of these runs now have a stop '
    'request; 0 means that none is in progress. The writer itself ends its run, with RUN_FINISHED '
    'or RUN_ERROR. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.status(thread_id text, run_id text default null, scope text default '')
returns agui.run_status
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run    agui.run := agui_internal.find_run(thread_id, run_id, scope);
    status agui.run_status;
    why    agui_internal.run_end := agui_internal.why_ended(run);
begin
    status.run_id := run.run_id;
    status.parent_run_id := (
        select parent.run_id
        from agui.run as parent
        where parent.thread_key = run.thread_key and parent.run_no = run.parent_no
    );
    status.status := run.status;
    status.first_seq := run.first_seq;
    status.last_seq := run.last_seq;
    if run.status = 'running' then
        select batch.first_seq + batch.n - 1
        into status.last_seq
        from agui.batch as batch
        where batch.thread_key = run.thread_key and batch.run_no = run.run_no
        order by batch.first_seq desc
        limit 1;
    end if;
    status.started_at := run.started_at;
    status.ended_at := run.ended_at;
    status.alive_at := agui_internal.last_seen_at(run);
    status.is_stale := agui_internal.is_stale(run);
    status.has_heartbeat := run.has_heartbeat;
    status.stop_requested_at := run.stop_requested_at;
    status.stop_reason := why.stop_reason;
    status.cut_off_reason := why.cut_off_reason;
    status.error_code := why.error_code;
    status.error_message := why.error_message;
    return status;
end
$$;

comment on function agui.status is
    'Returns the status of a run (null: the head): whether it is in progress, and whether its '
    'writer is still alive according to its last sign of life; or how and why it ended. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';
