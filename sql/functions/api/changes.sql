-- route: positions
create or replace function agui.consume(consumer text, max_rows int default 1000, scope text default null)
returns setof agui.consumed_run
language plpgsql
stable
security definer
rows 200
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.consumer_key(consumer, scope);
begin
    return query
        select change.*, coalesce(consumed.read_seq, 0)
        from agui.changes(
            (select known.position from agui.consumer as known where known.consumer_key = key), max_rows, scope
        ) as change
        left join agui_internal.consumer_thread as consumed
            on consumed.thread_key = agui.thread_key(change.scope, change.thread_id) and consumed.consumer_key = key;
end
$$;

comment on function agui.consume is
    'Returns what agui.changes returns behind the place of a consumer: a reader with a name, whose '
    'place the database keeps. It begins with all runs. The place stays until agui.move_consumer is '
    'called with the position of a row: after the rows up to it were processed, or in the same '
    'transaction. So each change is processed at least once. read_seq: how far agui.mark_read has '
    'noted that the events of the thread were processed. scope: the consumer of a scope (null: of all, '
    'which a role with one scope may not be). Errors: UI024 the place is of another '
    'history of transactions, so the consumer has to begin again, UI011 max_rows is not from 1 to 10000.';

-- route: positions
create or replace function agui.changes(after text default null, max_rows int default 1000, scope text default null)
returns setof agui.changed_run
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    place agui_internal.change_place := agui_internal.place_of_position(changes.after);
    rest  int := max_rows;
    n     int;
    own   record;
begin
    if max_rows is null or max_rows not between 1 and 10000 then
        raise exception using
            errcode = 'UI011',
            message = format('changes: max_rows must be between 1 and 10000, not %s', coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, pass the position of the last row of this one.';
    end if;
    select * into own from agui_internal.own_keys_in(changes.scope);

    if place.is_in_first_reading then
        return query
        select
            format('%s all %s %s %s', place.epoch, place.changed_in, run.thread_key, run.run_no),
            thread.scope, thread.thread_id, run.run_id, parent.run_id, run.status, run.first_seq, run.last_seq, run.started_at, run.ended_at,
            agui_internal.uid_of_thread(thread.thread_key, thread.thread_uid), false
        from (
            select *
            from agui.run as every_run
            where (every_run.thread_key, every_run.run_no) > (place.thread_key, place.run_no)
                and every_run.thread_key >= own.low and every_run.thread_key <= own.high
            order by every_run.thread_key, every_run.run_no
            limit rest
        ) as run
        join agui.thread as thread on thread.thread_key = run.thread_key
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        order by run.thread_key, run.run_no;
        get diagnostics n = row_count;
        rest := rest - n;
        place.thread_key := '00000000-0000-0000-0000-000000000000';
        place.run_no := 0;
    end if;
    if rest > 0 then
        return query
        select
            format('%s changed %s %s %s', place.epoch, changed.changed_in, changed.thread_key, changed.run_no),
            thread.scope, thread.thread_id, run.run_id, parent.run_id, run.status, run.first_seq, run.last_seq, run.started_at, run.ended_at,
            case when run.run_no is null then changed.thread_key else agui_internal.uid_of_thread(thread.thread_key, thread.thread_uid) end, run.run_no is null
        from (
            select * from agui_internal.changed_after(place.changed_in, place.thread_key, place.run_no, rest, own.low, own.high)
            union all
            select * from agui_internal.erased_after(place.changed_in, place.thread_key, place.run_no, rest, own.low, own.high)
            order by changed_in, thread_key, run_no
            limit rest
        ) as changed
        left join agui.run as run on run.thread_key = changed.thread_key and run.run_no = changed.run_no
        left join agui.thread as thread on thread.thread_key = run.thread_key
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        order by changed.changed_in, changed.thread_key, changed.run_no;
    end if;
end
$$;

comment on function agui.changes is
    'Returns the runs of all conversations that began, ended or took events after their end, behind a '
    'position (null: all runs first, then those that change), each at least once. The order is that '
    'of the transactions that changed them last, and a run whose transaction is in progress, or '
    'began after one that is, comes later. So nothing is missed, and a reader that keeps the position '
    'of its last row can stop at any time. A run may come again without a change. No row: nothing has '
    'changed. scope: only of a scope (null: all that the role sees). Works on a standby. '
    'So do the threads that are erased afterwards: is_erased is true, and thread_uid is that of their '
    'runs, for their names are not kept. '
    'Errors: 22023 not a position, UI011 max_rows is not from 1 to 10000, UI024 the position is of '
    'another history of transactions, so begin again.';

-- It says that a consumer is lost.
-- role: reader, monitor; route: positions; never: UI024
create or replace function agui.consumers()
returns setof agui.consumer_place
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    own    record;
    listed agui.consumer;
    low    uuid;
    high   uuid;
    place  agui_internal.change_place;
    counted bigint;
begin
    select * into own from agui_internal.monitored_keys();
    for listed in
        select known.*
        from agui.consumer as known
        where case
            when known.is_all then own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
            else agui_internal.first_key(known.scope) between own.low and own.high
        end
        order by known.is_all, known.scope, known.consumer
    loop
        low := case when listed.is_all then own.low else agui_internal.first_key(listed.scope) end;
        high := case when listed.is_all then own.high else agui_internal.last_key(listed.scope) end;
        begin
            place := agui_internal.place_of_position(listed.position);
            counted := 0;
            if place.is_in_first_reading then
                select count(*) into counted
                from (
                    select
                    from agui.run as run
                    where (run.thread_key, run.run_no) > (place.thread_key, place.run_no) and run.thread_key between low and high
                    limit 10000
                ) as unread;
                place.thread_key := '00000000-0000-0000-0000-000000000000';
                place.run_no := 0;
            end if;
            counted := least(10000, counted + (
                select count(*)
                from (
                    select from agui_internal.changed_after(place.changed_in, place.thread_key, place.run_no, 10000, low, high)
                    union all
                    select from agui_internal.erased_after(place.changed_in, place.thread_key, place.run_no, 10000, low, high)
                ) as changed
            ));
        exception
            when sqlstate 'UI024' then
                counted := null;
        end;
        return next row(
            case when not listed.is_all then listed.scope end, listed.consumer, listed.position, counted, counted is null, listed.created_at, listed.moved_at
        )::agui.consumer_place;
    end loop;
end
$$;

comment on function agui.consumers is
    'Returns the consumers of the scopes that the role sees (those of all scopes only to a role that sees '
    'all, or is a member of pg_monitor), with their places and how many changes they are behind.';

-- A consumer that it creates begins at the beginning.
-- role: writer; route: position of thread; never: UI024
create or replace function agui.mark_read(
    consumer text, thread_id text, seq bigint, thread_scope text default null, thread_uid uuid default null, scope text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    read_by uuid := agui_internal.consumer_key(consumer, scope);
    key     uuid;
begin
    perform agui_internal.refuse_foreign_scope(scope, 'change a consumer of all scopes');
    if scope <> thread_scope then
        raise exception using
            errcode = '22023',
            message = format('consumer "%s" of scope "%s" reads no threads of scope "%s"', consumer, scope, thread_scope);
    end if;
    key := agui_internal.key_to_change(thread_id, coalesce(thread_scope, scope, ''));
    if read_by is null then
        perform agui.move_consumer(consumer, null, scope);
        read_by := agui_internal.consumer_key(consumer, scope);
    end if;
    -- A thread that was erased in the meantime has nothing to note, neither the one that was begun again under its name.
    insert into agui_internal.consumer_thread as consumed (thread_key, consumer_key, read_seq)
    select thread.thread_key, read_by, mark_read.seq
    from agui.thread as thread
    where thread.thread_key = key and (mark_read.thread_uid is null or agui_internal.uid_of_thread(key, thread.thread_uid) = mark_read.thread_uid)
    for key share
    on conflict on constraint consumer_thread_pkey do update
    set read_seq = excluded.read_seq;
end
$$;

comment on function agui.mark_read is
    'Notes that a consumer has processed the events of a thread up to a seq, which agui.consume returns '
    'as read_seq. For consumers that read events: read those behind read_seq (agui.events), process '
    'them, note the last one, then move the consumer. So each event is processed once, or once more if the '
    'process ends in between; process and note in one transaction to have it exactly once. '
    'thread_uid: that of the row; if the thread was erased and begun again in the meantime, nothing is '
    'noted, so that its new events come. '
    'thread_scope: the scope of the thread (null: the one of the consumer, or the scope ''''); scope: as for '
    'agui.consume. '
    'Errors: 22023 not a name, or the thread is of another scope than the consumer, 42501 the role does '
    'not have the scope, UI012 another thread has the same key.';

-- role: writer; route: positions
create or replace function agui.move_consumer(consumer text, after text, scope text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'change a consumer of all scopes');
    perform agui_internal.place_of_position(after);
    if consumer is null or consumer = '' or octet_length(consumer) > 200 then
        raise exception using
            errcode = '22023',
            message = format('"%s" is not the name of a consumer', left(consumer, 200)),
            hint = 'A name has 1 to 200 bytes.';
    end if;
    insert into agui.consumer (scope, is_all, consumer, position)
    values (
        coalesce(move_consumer.scope, ''), move_consumer.scope is null, move_consumer.consumer,
        agui_internal.position_without_erased(move_consumer.after, move_consumer.scope)
    )
    on conflict on constraint consumer_name do update
    set position = excluded.position, moved_at = excluded.moved_at, moved_by = excluded.moved_by;
    if after is null then
        delete from agui_internal.consumer_thread as consumed
        where consumed.consumer_key = agui_internal.consumer_key(move_consumer.consumer, move_consumer.scope);
    end if;
end
$$;

comment on function agui.move_consumer is
    'Notes that a consumer has processed the changes up to a position, of a row that agui.consume or '
    'agui.changes returned. The first call creates the consumer. A position that is further back makes '
    'it read those changes again; null: all runs and their events again. scope: the consumer of a scope '
    '(null: of all). Errors: 22023 not a position or not a name, UI024 the position is of another history of '
    'transactions, 42501 the role does not have the scope.';

-- role: writer; route: positions
create or replace function agui.remove_consumer(consumer text, scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'change a consumer of all scopes');
    delete from agui.consumer as known where known.consumer_key = agui_internal.consumer_key(remove_consumer.consumer, remove_consumer.scope);
    return found;
end
$$;

comment on function agui.remove_consumer is
    'Removes a consumer and its place, of a scope or (null) of all scopes. Returns whether there was one. '
    'Errors: 42501 the role does not have the scope.';
