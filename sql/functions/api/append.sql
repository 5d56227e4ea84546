-- agui_recorder is for a server that records and follows for all scopes, and has another role for the rest.
-- role: writer, recorder; route: one node
create or replace function agui.append_many(
    thread_ids text[],
    run_ids    text[],
    events     json[],
    after_seqs bigint[] default null,
    inputs     json[] default null,
    parent_run_ids text[] default null,
    parallel   boolean[] default null,
    strict     boolean default false,
    wait       boolean default true,
    durable    boolean default true,
    scopes     text[] default null
)
returns setof agui.append_result
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- As in agui.append.
set enable_seqscan = off
set jit = off
as $$
declare
    max_calls constant int := 1000;
    max_bytes constant int := agui_internal.max_call_bytes();
    calls     int := coalesce(cardinality(thread_ids), 0);
    keys      uuid[];
    stamp     timestamptz;
    is_done   boolean[] := array_fill(false, array[calls]);
    last_seqs bigint[] := array_fill(null::bigint, array[calls]);
    call      record;
    own       record;
    answer    agui.append_result;
begin
    if calls <> coalesce(cardinality(run_ids), 0) or calls <> coalesce(cardinality(events), 0)
        or calls <> coalesce(cardinality(after_seqs), calls) or calls <> coalesce(cardinality(inputs), calls)
        or calls <> coalesce(cardinality(parent_run_ids), calls) or calls <> coalesce(cardinality(append_many.parallel), calls)
        or calls <> coalesce(cardinality(scopes), calls)
    then
        raise exception using
            errcode = 'UI008',
            message = format('agui.append_many: all arrays must have one item for each call; got %s threads, %s runs and %s arrays of events',
                calls, coalesce(cardinality(run_ids), 0), coalesce(cardinality(events), 0));
    end if;
    if calls > max_calls then
        raise exception using
            errcode = 'UI011',
            message = format('agui.append_many: at most %s calls are accepted, got %s', max_calls, calls);
    end if;
    if (
        select sum(coalesce(octet_length(item.events::text), 0) + coalesce(octet_length(item.input::text), 0))
        from unnest(append_many.events, inputs) as item (events, input)
    ) > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('agui.append_many: at most %s bytes of events and inputs are accepted', max_bytes);
    end if;
    if not durable then
        perform set_config('synchronous_commit', 'off', true);
    end if;

    keys := array(
        select agui.thread_key(coalesce(item.scope, ''), item.thread_id)
        from unnest(thread_ids, scopes) with ordinality as item (thread_id, scope, call_no)
        order by item.call_no
    );

    if agui_internal.has_row_security() then
        select * into own from agui_internal.own_keys();
        for call in
            select item.call_no, refusal.message, refusal.hint
            from unnest(keys, scopes) with ordinality as item (key, scope, call_no)
            cross join lateral agui_internal.scope_refusal(item.key, coalesce(item.scope, '')) as refusal
            where item.key is not null and (item.key >= own.low and item.key <= own.high) is not true
        loop
            is_done[call.call_no] := true;
            keys[call.call_no] := null;
            answer := row(call.call_no, null, '42501', call.message, null, call.hint, null);
            return next answer;
        end loop;
    end if;

    if agui_internal.this_node() is not null then
        for call in
            select item.call_no, refusal.message, refusal.detail, refusal.hint
            from (
                select given.*
                from unnest(keys, scopes, thread_ids) with ordinality as given (key, scope, thread_id, call_no)
                where agui_internal.fenced_node_of(given.key) <> agui_internal.this_node()
                offset 0
            ) as item
            cross join lateral agui_internal.moved_refusal(json_build_array(
                agui_internal.place_of_thread(item.key, coalesce(item.scope, ''), item.thread_id)
            )) as refusal
        loop
            is_done[call.call_no] := true;
            keys[call.call_no] := null;
            answer := row(call.call_no, null, 'UI027', call.message, call.detail, call.hint, null);
            return next answer;
        end loop;
    end if;

    -- Take all locks in one order, so that two callers cannot deadlock, and in a separate
    -- statement, as agui.append does.
    if wait then
        perform agui_internal.wait_for_lock(lock, format('the thread with key %s', key))
        from (
            select agui_internal.thread_lock_id(key) as lock, min(key::text) as key
            from unnest(keys) as item (key)
            group by lock
            order by lock
            offset 0
        ) as item
        where not pg_try_advisory_xact_lock(lock);
    else
        for call in
            with taken as materialized (
                select lock, pg_try_advisory_xact_lock(lock) as is_taken
                from (select distinct agui_internal.thread_lock_id(key) as lock from unnest(keys) as item (key)) as item
            )
            select item.*
            from unnest(keys, thread_ids, run_ids) with ordinality as item (key, thread_id, run_id, call_no)
            join taken on taken.lock = agui_internal.thread_lock_id(item.key)
            where not taken.is_taken
        loop
            is_done[call.call_no] := true;
            answer := row(
                call.call_no, null, '55P03',
                format('run "%s" of thread "%s": another transaction holds the lock of the thread', call.run_id, call.thread_id),
                null, 'Repeat the call, or call with wait => true.', null
            );
            return next answer;
        end loop;
    end if;

    -- Fast path: one statement appends the next tokens of runs in progress, for the first call of
    -- each thread. As in agui.append, it is valid under READ COMMITTED only.
    if current_setting('transaction_isolation') = 'read committed' then
        stamp := clock_timestamp();
        for call in
            with plain as materialized (
                select item.*, agui_internal.plain_event_count(item.events) as n
                from (
                    select
                        item.*,
                        row_number() over (partition by item.key order by item.call_no) as nth
                    from unnest(keys, scopes, thread_ids, run_ids, append_many.events, after_seqs, inputs, parent_run_ids) with ordinality
                        as item (key, scope, thread_id, run_id, events, after_seq, input, parent_run_id, call_no)
                    where not is_done[item.call_no]
                ) as item
                where item.nth = 1 and item.input is null and item.parent_run_id is null
            ),
            appended as (
                insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, text_bytes, hash)
                select
                    plain.key, place.first_seq, greatest(place.recorded_at, stamp), plain.n, place.run_no, plain.events,
                    agui_internal.text_bytes_to_store(plain.events),
                    case
                        when place.hash is not null then agui_internal.next_link(
                            place.hash, place.first_seq, plain.n, greatest(place.recorded_at, stamp), plain.run_id, plain.events
                        )
                    end
                from plain
                cross join lateral agui_internal.next_place(plain.key, coalesce(plain.scope, ''), plain.thread_id, plain.run_id, plain.after_seq) as place
                where plain.n is not null and (place.hash is null or agui_internal.is_dense_call(plain.events, plain.n))
                on conflict do nothing
                returning batch.thread_key, batch.first_seq + batch.n - 1 as last_seq, batch.recorded_at
            )
            -- Only the first call of each thread is here, so the key identifies it. A join would be
            -- planned without row estimates.
            select array_position(keys, appended.thread_key) as call_no, appended.last_seq, appended.recorded_at
            from appended
        loop
            is_done[call.call_no] := true;
            answer := row(call.call_no, call.last_seq, null, null, null, null, call.recorded_at);
            return next answer;
        end loop;
    end if;

    if true = all (is_done) then
        return;
    end if;

    -- The remaining calls run one after the other. The first attempt uses a single savepoint,
    -- because one for each call slows down every call. Only if a call is refused does each get its
    -- own.
    begin
        for call in
            select * from unnest(thread_ids, run_ids, append_many.events, after_seqs, inputs, parent_run_ids, append_many.parallel, scopes) with ordinality
                as item (thread_id, run_id, events, after_seq, input, parent_run_id, parallel, scope, call_no)
            where not is_done[call_no]
            order by call_no
        loop
            last_seqs[call.call_no] := agui.append(
                call.thread_id, call.run_id, call.events, call.after_seq, call.input, call.parent_run_id,
                coalesce(call.parallel, false), append_many.strict, coalesce(call.scope, '')
            );
        end loop;
    exception
        when others then
            last_seqs := array_fill(null::bigint, array[calls]);
    end;

    for call in
        select * from unnest(thread_ids, run_ids, append_many.events, after_seqs, inputs, parent_run_ids, append_many.parallel, scopes) with ordinality
            as item (thread_id, run_id, events, after_seq, input, parent_run_id, parallel, scope, call_no)
        where not is_done[call_no]
        order by call_no
    loop
        answer := row(call.call_no, last_seqs[call.call_no], null, null, null, null, null);
        if answer.last_seq is null then
            begin
                answer.last_seq := agui.append(
                    call.thread_id, call.run_id, call.events, call.after_seq, call.input, call.parent_run_id,
                    coalesce(call.parallel, false), append_many.strict, coalesce(call.scope, '')
                );
            exception
                when others then
                    if sqlstate !~ '^(UI|22|54)' then
                        raise;  -- the call is not at fault: store none of the calls
                    end if;
                    get stacked diagnostics
                        answer.error_code = returned_sqlstate,
                        answer.error = message_text,
                        answer.detail = pg_exception_detail,
                        answer.hint = pg_exception_hint;
            end;
        end if;
        return next answer;
    end loop;
end
$$;

comment on function agui.append_many is
    'Runs up to 1,000 calls of agui.append in one transaction, for a process that writes many '
    'runs. Each array holds one argument of all calls, in the order of execution. Returns one row '
    'for each call, identified by its number, in no particular order. A refused call does not '
    'affect the others. With wait => false, a call for a thread that another transaction is '
    'writing to is not executed and returns 55P03. strict applies to all calls. durable => false '
    'commits without waiting for the disk: if the server crashes, the last calls may be lost (see '
    'UI017). '
    'Errors: UI002 unknown run, UI003 unknown parent, UI004 the parent is in progress, UI005 the '
    'run has ended, UI006 another run is in progress or claimed, UI007 the repeated call differs '
    'from the log, UI008 arrays of different lengths, UI009 the run id is in use or is not that of '
    'RUN_STARTED, UI011 more than 1,000 calls or 64 MB, UI012 another thread has the same key, '
    'UI014 the thread was erased, UI016 the run was cut off, UI017 the log was rewound, UI021 '
    'RUN_STARTED names another thread (strict), UI027 another node of the cluster has the thread.';

-- role: writer
create or replace function agui.append(
    thread_id text,
    run_id    text,
    events    json,
    after_seq bigint default null,
    input     json default null,
    parent_run_id text default null,
    parallel  boolean default false,
    strict    boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- A session keeps its plans until a vacuum or an analyze. Made while the store is young, they would
-- read whole tables, in a long transaction for every run of it.
set enable_seqscan = off
-- The costs of a table that has no other plan would turn it on.
set jit = off
as $$
declare
    key       uuid := agui_internal.own_thread_key(scope, thread_id);
    new_n     int := case
        when input is null and parent_run_id is null and pg_column_size(events) < 1000000 then agui_internal.plain_event_count(events)
    end;
    stamp     timestamptz;
    last_seq  bigint;
begin
    -- Fast path for the most frequent call: the next tokens of a run in progress. One check of the
    -- text, one statement. Each expression is set up for each call, so there are few.
    if new_n is not null and agui_internal.lock_thread(key) then
        stamp := clock_timestamp();
        -- List all columns in the order of the table. Otherwise the plan needs an extra node that
        -- reorders them.
        insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, earlier_us, text_bytes, hash, links)
        select
            key, place.first_seq, greatest(place.recorded_at, stamp), new_n, place.run_no, append.events, null::int[],
            agui_internal.text_bytes_to_store(append.events),
            case
                when place.hash is not null then agui_internal.next_link(
                    place.hash, place.first_seq, new_n, greatest(place.recorded_at, stamp), append.run_id, append.events
                )
            end,
            null::int[]
        from agui_internal.next_place(key, append.scope, append.thread_id, append.run_id, append.after_seq) as place
        where place.hash is null or agui_internal.is_dense_call(append.events, new_n)
        on conflict do nothing
        returning batch.first_seq + batch.n - 1 into last_seq;
        if found then
            return last_seq;
        end if;
    end if;

    return agui_internal.append_events(thread_id, run_id, events, after_seq, input, parent_run_id, parallel, strict, scope, false);
end
$$;

comment on function agui.append is
    'Appends a JSON array of AG-UI events to a run and returns the seq of the last one. '
    'RUN_STARTED begins the run; RUN_FINISHED or RUN_ERROR ends it. after_seq makes a retry safe: '
    'it is the seq of the last event of the run that the writer knows to be stored (0: none). '
    'Events that the log already has after it are compared and not stored twice, so a call whose '
    'answer was lost can be repeated, in batches of any size. With null there is no such check. '
    'input is the RunAgentInput of the run, for a RUN_STARTED that does not carry it; it is kept '
    'byte for byte and must come with the call that begins the run. parent_run_id names the '
    'parent; an empty text means none; null means the one that RUN_STARTED names, or else the head. parallel '
    'allows the run to begin while others are in progress. Events after the end of a run are '
    'accepted in the call that ends it, and later with after_seq as long as no run continues from '
    'it. The same holds for a second RUN_STARTED. With after_seq => 0 a run may begin with any '
    'event. strict refuses all of these, and a RUN_STARTED with the id of another thread. '
    'Errors: UI002 unknown run, UI003 unknown parent, UI004 the parent is in progress, UI005 the '
    'run has ended, UI006 another run is in progress or claimed, UI007 the repeated call differs '
    'from the log, UI008 invalid events, or an input that is not an object or comes too late, '
    'UI009 the run id is in use or is not that of RUN_STARTED, UI011 a limit is exceeded, UI012 '
    'another thread has the same key, UI014 the thread was erased, UI016 the run was cut off, '
    'UI017 the log was rewound, UI021 RUN_STARTED names another thread (strict).';

-- role: maintainer
create or replace function agui.import_events(
    thread_id text,
    run_id    text,
    events    json,
    after_seq bigint default null,
    input     json default null,
    parent_run_id text default null,
    parallel  boolean default false,
    strict    boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- As in agui.append.
set enable_seqscan = off
set jit = off
as $$
begin
    perform agui_internal.own_thread_key(scope, thread_id);
    return agui_internal.append_events(thread_id, run_id, events, after_seq, input, parent_run_id, parallel, strict, scope, true);
end
$$;

comment on function agui.import_events is
    'Appends events of a run that took place in the past. Arguments and errors are those of '
    'agui.append. recorded_at of an event is its timestamp member (milliseconds since 1970, or '
    'seconds); an event without one, or with one before 2015, gets the time of the event before it, or of the '
    'import. Times never decrease along the log of a thread and are never in '
    'the future. Thread lists, retention and durations are therefore correct for imported '
    'conversations. A run that has not ended counts as alive from now on. Requires '
    'agui_maintainer. '
    'Errors: UI002 unknown run, UI003 unknown parent, UI004 the parent is in progress, UI005 the '
    'run has ended, UI006 another run is in progress or claimed, UI007 the repeated call differs '
    'from the log, UI008 invalid arguments, UI009 the run id is in use or is not that of '
    'RUN_STARTED, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the '
    'thread was erased, UI016 the run was cut off, UI017 the log was rewound, UI021 RUN_STARTED '
    'names another thread (strict).';
