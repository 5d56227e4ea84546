create or replace function agui_internal.changed_after(
    changed_in xid8, thread_key uuid, run_no int, max_rows int, low uuid, high uuid
)
returns setof agui_internal.changed_place
language plpgsql
stable
parallel safe
rows 200
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
-- The index has the order of the transactions. The planner takes a range of keys for few runs, and would read and sort all of them.
set enable_sort = off
set jit = off
as $$
declare
    -- Of all runs so many changes are read before the runs of a scope are, and of a scope at most so many runs.
    many_changes constant int := 1000;
    many_runs    constant int := 10000;
begin
    -- A reader of a scope that is quiet stays where it is, while other scopes go on.
    if left(low::text, 18) = left(high::text, 18)  -- 64 bits, which are those of a scope
        and exists (
            select
            from agui.run as changed
            where changed.changed_in >= changed_after.changed_in and changed.changed_in < pg_snapshot_xmin(pg_current_snapshot())
            order by changed.changed_in
            offset many_changes
            limit 1
        )
        and not exists (
            select from agui.run as own where own.thread_key >= low and own.thread_key <= high offset many_runs limit 1
        )
    then
        return query
        select own.changed_in, own.thread_key, own.run_no
        from (
            -- offset 0: otherwise the planner may read the changes of all scopes in their order.
            select run.changed_in, run.thread_key, run.run_no from agui.run as run where run.thread_key >= low and run.thread_key <= high offset 0
        ) as own
        where own.changed_in < pg_snapshot_xmin(pg_current_snapshot())
            and (own.changed_in, own.thread_key, own.run_no) > (changed_after.changed_in, changed_after.thread_key, changed_after.run_no)
        order by own.changed_in, own.thread_key, own.run_no
        limit max_rows;
        return;
    end if;

    return query
    select changed.changed_in, changed.thread_key, changed.run_no
    from agui.run as changed
    where changed.changed_in >= changed_after.changed_in
        -- Below the horizon no transaction is in progress, so nothing will come before what is read now.
        and changed.changed_in < pg_snapshot_xmin(pg_current_snapshot())
        and (changed.changed_in, changed.thread_key, changed.run_no) > (changed_after.changed_in, changed_after.thread_key, changed_after.run_no)
        and changed.thread_key >= low and changed.thread_key <= high
    order by changed.changed_in, changed.thread_key, changed.run_no
    limit max_rows;
end
$$;

comment on function agui_internal.changed_after is
    'The runs with keys of a range that were changed behind a place, in the order of the transactions '
    'that changed them last. All of them: none will come before these later.';

create or replace function agui_internal.consumer_key(consumer text, scope text)
returns uuid
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select known.consumer_key
    from agui.consumer as known
    cross join agui_internal.own_keys() as own
    where known.scope = coalesce(consumer_key.scope, '')
        and known.is_all = (consumer_key.scope is null)
        and known.consumer = consumer_key.consumer
        and own.low <= case when known.is_all then '00000000-0000-0000-0000-000000000000' else agui_internal.first_key(known.scope) end
        and own.high >= case when known.is_all then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else agui_internal.last_key(known.scope) end
$$;

comment on function agui_internal.consumer_key is
    'The key of a consumer of a scope, or (null) of all scopes; null: there is none that the calling role '
    'sees.';

create or replace function agui_internal.database_identity()
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select split_part(agui_internal.epoch(), '/', 1) || '/' || database.oid
    from pg_database as database
    where database.datname = current_database()
$$;

comment on function agui_internal.database_identity is
    'The cluster and the database, which stay the same in a standby that is promoted and after a '
    'restore to a point in time, and are others where a dump is restored. A physical copy that is '
    'promoted has the same, too. If the server does not say which cluster it is (agui_internal.epoch), '
    'only the database is compared.';

-- It returns tombstones of erased threads.
-- role: none
create or replace function agui_internal.erased_after(
    changed_in xid8, thread_key uuid, run_no int, max_rows int, low uuid, high uuid
)
returns setof agui_internal.changed_place
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
    return query
    select erasure.erased_in, erasure.thread_uid, 0
    from agui.erasure as erasure
    cross join agui_internal.erased_range(low, high) as own
    where erasure.thread_uid is not null
        and erasure.erased_in >= erased_after.changed_in
        and erasure.erased_in < pg_snapshot_xmin(pg_current_snapshot())
        and (erasure.erased_in, erasure.thread_uid, 0) > (erased_after.changed_in, erased_after.thread_key, erased_after.run_no)
        and erasure.erased_key >= own.low and erasure.erased_key <= own.high
    order by erasure.erased_in, erasure.thread_uid
    limit max_rows;
end
$$;

comment on function agui_internal.erased_after is
    'The threads with keys of a range that were erased behind a place, as agui_internal.changed_after '
    'has the runs that were changed: thread_key is thread_uid, run_no 0. For the owner only, because '
    'agui.erasure is for maintainers.';

create or replace function agui_internal.place_of_position(named text)
returns agui_internal.change_place
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    first_key constant uuid := '00000000-0000-0000-0000-000000000000';
    epoch     constant text := agui_internal.epoch();
    horizon   constant xid8 := pg_snapshot_xmin(pg_current_snapshot());
    part      constant text[] := regexp_match(named, '^(\d+/\d+) (all|changed) (\d{1,20}) ([0-9a-f-]{36}) (\d{1,10})$');
    place     agui_internal.change_place;
begin
    if named is null then
        return row(epoch, true, horizon, first_key, 0);
    end if;
    begin
        if part is null then
            raise data_exception;
        end if;
        place := row(part[1], part[2] = 'all', part[3]::xid8, part[4]::uuid, part[5]::int);
    exception
        when data_exception then
            raise exception using
                errcode = '22023',
                message = format('changes: "%s" is not a position', left(named, 100)),
                hint = 'Use the position of an earlier row (pgagui feed: of a line); without a position (null) it begins with all runs.';
    end;
    -- What was read is below the horizon, which only rises, unless the server lost what a reader saw:
    -- in a crash without synchronous_commit. A standby may be behind.
    if place.epoch <> epoch
        or not pg_is_in_recovery() and place.changed_in >= horizon and not place.is_in_first_reading
        or not pg_is_in_recovery() and place.changed_in > pg_snapshot_xmax(pg_current_snapshot())
    then
        raise exception using
            errcode = 'UI024',
            message = 'changes: the position is of another history of transactions: the database was restored, or failed over to a standby',
            hint = 'Begin without a position (null), which returns all runs. What you had may have changed or be gone.';
    end if;
    return place;
end
$$;

comment on function agui_internal.place_of_position is
    'What a position of agui.changes says; null: the beginning. Errors: 22023 not a position, UI024 it '
    'is of another history of transactions.';

create or replace function agui_internal.epoch()
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select system.system_identifier || '/' || case
            when pg_is_in_recovery() then greatest(checkpoint.timeline_id, recovery.min_recovery_end_timeline)
            -- The one that is written. The last checkpoint is still of the one before, for minutes
            -- after a standby was promoted.
            else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int
        end
        from pg_control_system() as system
        cross join pg_control_checkpoint() as checkpoint
        cross join pg_control_recovery() as recovery
    );
exception
    when insufficient_privilege or undefined_function or feature_not_supported then
        return '0/0';  -- some managed services
end
$$;

comment on function agui_internal.epoch is
    'The cluster and its timeline. Numbers of transactions compare only within an epoch: a dump brings '
    'those of another cluster, and after a failover or a restore to a point in time the server may '
    'assign numbers once more. 0/0: the server does not say.';

create or replace function agui_internal.position_without_erased("position" text, scope text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A place with run 0 names no run: it is the beginning, or an erasure.
    key    constant uuid := substring(position from ' ([0-9a-f]{8}-[0-9a-f-]{27}) [1-9][0-9]*$');
    before record;
begin
    perform from agui.thread as thread where thread.thread_key = key for key share;
    if found or key is null then
        return position;
    end if;
    before := agui_internal.run_before(key, coalesce(agui_internal.first_key(scope), '00000000-0000-0000-0000-000000000000'));
    return regexp_replace(position, '[^ ]+ [0-9]+$', concat_ws(' ', before.thread_key, before.run_no));
end
$$;

comment on function agui_internal.position_without_erased is
    'A position of agui.changes for a reader of a scope (null: of all): the same one, unless its thread was '
    'erased; then one behind the same runs that does not hold the key of the thread. The thread cannot be '
    'erased before the transaction ends.';

create or replace function agui_internal.run_before(key uuid, low uuid, out thread_key uuid, out run_no int)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    select run.thread_key, run.run_no into thread_key, run_no
    from agui.run as run
    where run.thread_key >= low and run.thread_key < key
    order by run.thread_key desc, run.run_no desc
    limit 1;
    if not found then
        thread_key := '00000000-0000-0000-0000-000000000000';
        run_no := 0;
    end if;
end
$$;

comment on function agui_internal.run_before is
    'The last run of the threads whose keys are below key, and not below low; if there is none, the place '
    'before all runs. A position that named an erased thread names this run instead: none is between them.';
