-- Which node of a cluster has a thread (docs/scale.md). A thread lives in one node, with its lock,
-- the order of its events and all that is folded of it.
--
--   bucket_of                    10 bits of the key of a thread: one of 1,024 buckets
--   agui_internal.bucket         the node of each bucket, and since which move (epoch)
--   agui_internal.moved_thread   where single threads are that are being moved, or were moved alone
--   agui_internal.pinned_scope   scopes whose threads are all in one bucket
--
-- Every function that names a thread gets its key from own_thread_key or visible_thread_key
-- (core/tenants), which also ask for the node. If another node has the thread, the call fails with
-- UI027, whose DETAIL says which.
--
-- - Each node has a copy of the map, but refuses calls only by what it says of its own buckets. So
--   an old copy of the rest does no harm.
-- - Readers look the thread up in their own snapshot and take no lock. If the snapshot sees that
--   the thread is here, it sees its rows, which stay for some seconds after a move.
-- - Writers share the lock of the bucket until their transaction ends (fenced_node_of), and look it
--   up behind the lock. A move takes that lock alone, for the time of a commit (upkeep/move). A
--   transaction with an older snapshot fails with 40001.
-- - Each row of the map says whether there are pins at all (has_pins), so a call looks one up only
--   then. Clients get no list of pins, which would name the tenants of others: they note the bucket
--   that UI027 gives them for a scope.
-- - Outside of a cluster this costs nothing: this_node() is a constant that the planner puts into
--   each statement. set_node replaces the function.
-- - Functions over no thread (lists, search, facts, jobs) answer for their node.

create or replace function agui_internal.fenced_node_of(thread_key uuid)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bucket_no int := agui_internal.bucket_of(thread_key);
    pinned_to int;
    lock      bigint;
    place     record;
begin
    loop
        lock := agui_internal.bucket_lock_id(bucket_no);
        if not pg_try_advisory_xact_lock_shared(lock) then
            perform agui_internal.wait_for_lock(lock, format('bucket %s of the cluster', bucket_no), is_shared => true);
        end if;
        if current_setting('transaction_isolation') <> 'read committed' then
            -- The snapshot of the caller may be older than the lock. A move updates this row, so an
            -- outdated snapshot fails with 40001.
            perform from agui_internal.bucket as placed where placed.bucket = bucket_no for share;
        end if;
        -- A statement of its own, whose snapshot is younger than the lock.
        select coalesce(moved.node, placed.node) as node, placed.has_pins into place
        from agui_internal.bucket as placed
        left join agui_internal.moved_thread as moved
            on moved.thread_key = fenced_node_of.thread_key
        where placed.bucket = bucket_no;
        exit when not place.has_pins;
        -- A pin changes behind the locks of all buckets.
        pinned_to := agui_internal.bucket_of_thread(thread_key);
        exit when pinned_to = bucket_no;
        bucket_no := pinned_to;
    end loop;
    return place.node;
end
$$;

comment on function agui_internal.fenced_node_of is
    'The node of a thread, which need not exist. Neither the thread nor its bucket moves before the '
    'transaction ends. For writers. 55P03 as in agui_internal.wait_for_lock; 40001: it was moved '
    'since the snapshot of the transaction.';

create or replace function agui_internal.bucket_lock_id(bucket int)
returns bigint
language sql
immutable
strict
parallel safe
-- As in agui_internal.thread_lock_id, with the seed "buck".
return hashint4extended(bucket, x'6275636b'::bigint);

comment on function agui_internal.bucket_lock_id is
    'The advisory lock that writers to threads of a bucket share until their transaction ends, and '
    'that a move takes alone for a moment.';

create or replace function agui_internal.node_of(thread_key uuid)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    place record;
begin
    select coalesce(moved.node, placed.node) as node, placed.has_pins and moved.node is null as may_be_pinned into place
    from agui_internal.bucket as placed
    left join agui_internal.moved_thread as moved
        on moved.thread_key = node_of.thread_key
    where placed.bucket = agui_internal.bucket_of(node_of.thread_key);
    if place.may_be_pinned then
        return (
            select placed.node
            from agui_internal.bucket as placed
            where placed.bucket = agui_internal.bucket_of_thread(node_of.thread_key)
        );
    end if;
    return place.node;
end
$$;

comment on function agui_internal.node_of is
    'The node of a thread, which need not exist, as far as the snapshot of the caller sees.';

create or replace function agui_internal.place_of_thread(thread_key uuid, scope text, thread_id text)
returns json
language plpgsql
volatile
-- So it sees what was committed last, also for a caller whose snapshot is older.
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select json_build_object(
            'scope', scope, 'threadId', thread_id,
            'node', coalesce(moved.node, placed.node), 'bucket', placed.bucket, 'epoch', placed.epoch, 'ofThread', moved.node is not null
        )
        from agui_internal.bucket as hashed
        join agui_internal.bucket as placed
            on placed.bucket = case
                when hashed.has_pins then agui_internal.bucket_of_thread(place_of_thread.thread_key)
                else hashed.bucket
            end
        left join agui_internal.moved_thread as moved
            on moved.thread_key = place_of_thread.thread_key
        where hashed.bucket = agui_internal.bucket_of(place_of_thread.thread_key)
    );
end
$$;

comment on function agui_internal.place_of_thread is
    'Where a thread is, for DETAIL of UI027: node, and the bucket with its epoch. ofThread: that holds '
    'for this thread alone, and not for its bucket.';

-- Which node has a bucket is so for all scopes.
-- check: none
create or replace function agui_internal.bucket_of_thread(thread_key uuid)
returns int
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        (
            select pinned.bucket
            from agui_internal.pinned_scope as pinned
            where pinned.scope_hash = agui_internal.scope_hash(bucket_of_thread.thread_key)
        ),
        agui_internal.bucket_of(bucket_of_thread.thread_key)
    );
end
$$;

comment on function agui_internal.bucket_of_thread is
    'The bucket of a thread: the one that its scope is pinned to, or else agui_internal.bucket_of.';

create or replace function agui_internal.bucket_of(thread_key uuid)
returns int
language sql
immutable
strict
parallel safe
return get_byte(uuid_send(thread_key), 8) * 4 + get_byte(uuid_send(thread_key), 9) / 64;

comment on function agui_internal.bucket_of is
    'The bucket of a thread, from 0 to 1023: the first 10 bits of the second half of its key, which '
    'hashes scope and thread id.';

create or replace function agui_internal.scope_hash(thread_key uuid)
returns bytea
language sql
immutable
strict
parallel safe
return substring(uuid_send(thread_key) for 8);

comment on function agui_internal.scope_hash is
    'The first half of the key of a thread, which hashes its scope.';

create or replace function agui_internal.refuse_moved(places json)
returns uuid
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    refusal record;
begin
    if places is null then
        return null;
    end if;
    select * into refusal from agui_internal.moved_refusal(places);
    raise exception using
        errcode = 'UI027',
        message = refusal.message,
        detail = refusal.detail,
        hint = refusal.hint;
end
$$;

comment on function agui_internal.refuse_moved is
    'Raises UI027 for a list of agui_internal.place_of_thread: other nodes have these threads. Does '
    'nothing without a list.';

create or replace function agui_internal.moved_refusal(places json, out message text, out detail text, out hint text)
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        format('thread "%s"%s is on node "%s" of the cluster, and this is node "%s"%s',
            left(place ->> 'threadId', 200),
            case when place ->> 'scope' <> '' then format(' of scope "%s"', left(place ->> 'scope', 200)) else '' end,
            place ->> 'node', agui_internal.this_node(),
            case when json_array_length(places) > 1 then format('; %s threads of the call are on other nodes', json_array_length(places)) else '' end),
        places::text,
        'Call that node. Clients that know the cluster do so themselves.'
    from (select places -> 0) as first (place)
$$;

comment on function agui_internal.moved_refusal is
    'The error text of UI027 for a list of agui_internal.place_of_thread, which is its DETAIL.';

create or replace function agui_internal.refuse_unless_node(caller text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.this_node() is null then
        raise exception using
            errcode = '55000',
            message = format('%s: this database is not a node of a cluster', caller),
            hint = 'call agui.join_cluster(…), or "pgagui cluster init".';
    end if;
end
$$;

comment on function agui_internal.refuse_unless_node is
    'Raises 55000 if the database is not a node of a cluster. caller: the function, for the message.';

create or replace function agui_internal.set_node(name text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if name is distinct from agui_internal.this_node() then
        execute format(
            'create or replace function agui_internal.this_node() returns text language sql stable parallel safe return %L::text', name
        );
    end if;
end
$$;

comment on function agui_internal.set_node is
    'Makes agui_internal.this_node() return this name (null: none). It changes the function only if it differs.';

create or replace function agui_internal.this_node()
returns text
language sql
stable
parallel safe
-- A constant that is inlined, as in agui_internal.has_row_security: a database that is no node pays
-- nothing. agui_internal.set_node replaces the function.
return null::text;

comment on function agui_internal.this_node is
    'The name of this node of a cluster; null: the database is of no cluster. agui.join_cluster replaces this function.';
