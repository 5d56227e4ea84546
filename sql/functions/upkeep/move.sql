-- Threads and buckets from one node of a cluster to another while they are in use. Package cluster
-- calls these steps; core/cluster has the guard that they rely on.
--
-- A bucket is moved thread by thread, each with a short pause of its own:
--
--    1 fence      fence_threads, on the source: waits for writers, notes the new node, commits.
--                 Calls are sent to the other node from then on, and clients wait.
--    2 copy       receive_thread and upkeep/archive, on the target, in one transaction: rows, their
--                 hashes, the log verified. With its commit the target has the thread.
--    3 hand over  hand_over_buckets on the source, receive_buckets on the target, then on the
--                 others, once no thread and no claim of a bucket is left
--    4 remove     remove_moved_thread, on the source, two seconds later, for reads in progress
--
-- - At most one node takes writes, whatever is killed or lost: the fence is committed before the
--   copy, and the copy is one transaction. The next mover finds what is left: it copies what is
--   fenced and not copied, and removes rows of threads that are elsewhere, after it has asked node
--   after node which one has the thread. If none names itself, the node that fenced it last
--   (moved_at) has the only copy; clocks must agree better than the time between two moves of one
--   thread.
-- - If a copy fails for certain, the source takes the thread back. If the answer to the commit was
--   lost, the thread stays fenced until the next move.
-- - These commits wait for the disk, whatever synchronous_commit says (hold_next_move). A failover
--   to a standby that lagged takes them back nevertheless, so the standby has to be synchronous.
-- - No step of an earlier mover changes anything behind the next one. A mover holds the lock of
--   moves and that of its random token on each node (begin_move). Each step shares the lock of
--   steps, then finds out whether one session still holds both (begin_move_step), and is refused
--   otherwise. The next mover takes the lock of steps alone once, so it waits for each step that
--   has begun.
-- - A pin (pin_scope) changes the bucket of all threads of a scope. Each node first notes the
--   threads that it has as moved alone, behind the locks of all its buckets. The node that had the
--   whole scope comes first, and the one that gets it last. So one node at most takes a new thread.
-- - Threads that were moved alone come along when their bucket is moved. forget_moved_threads then
--   removes those rows.
-- - What an archive has goes along, and all tombstones. Snapshots, facts and texts of the search do
--   not: the jobs of the target make them.
-- - Positions of two nodes cannot be compared, so readers of changes get moved runs once more. What
--   they have noted of the thread goes along (readers_of_thread, receive_readers). Requests that
--   wait stay on the source, which makes no new ones.
-- - A bucket is not copied as a whole: copied rows would have to be hidden from lists and jobs
--   until the end, and the pause would grow with what is written meanwhile.

-- role: maintainer
create or replace function agui_internal.begin_move(token bigint)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    if not pg_try_advisory_lock(agui_internal.move_lock_id()) then
        return false;
    end if;
    perform pg_advisory_lock(token);
    -- Behind this lock no step of an earlier move is left. Those that begin later are refused.
    perform agui_internal.wait_for_lock(agui_internal.step_lock_id(), format('node "%s" of the cluster', agui_internal.this_node()));
    return true;
end
$$;

comment on function agui_internal.begin_move is
    'Begins a move on this node, for as long as the session holds its locks (pg_advisory_unlock_all). token is a '
    'random number that the steps of the move name (agui_internal.begin_move_step). Waits for steps of an earlier '
    'move that were not committed yet. Returns false if another move is in progress. 55P03: such a step '
    'is still not committed.';

-- role: maintainer
create or replace function agui_internal.begin_move_step(token bigint)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    -- Behind the lock of steps: a move that begins now waits for this one.
    if not exists (
        select
        from pg_locks as held
        where held.locktype = 'advisory' and held.mode = 'ExclusiveLock' and held.granted
            and held.database = (select oid from pg_database where datname = current_database())
            and held.objsubid = 1
            and (held.classid::bigint << 32 | held.objid::bigint) in (agui_internal.move_lock_id(), begin_move_step.token)
        group by held.pid
        having count(*) = 2
    ) then
        raise exception using
            errcode = '55000',
            message = format('the move has lost the lock that keeps other moves away from node "%s"', agui_internal.this_node()),
            hint = 'Move again: that finishes what this move has left.';
    end if;
end
$$;

comment on function agui_internal.begin_move_step is
    'Begins a step in this transaction, if the move that has this token (agui_internal.begin_move) is still '
    'in progress. So a step that comes late changes nothing that a later move has looked at. 55000: the move has lost '
    'its lock.';

create or replace function agui_internal.move_lock_id()
returns bigint
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return hashtextextended('move threads of a cluster of pgagui', 0);

comment on function agui_internal.move_lock_id is
    'The advisory lock that a session of a mover holds while its move is in progress (agui_internal.begin_move).';

-- role: maintainer
create or replace function agui_internal.fence_threads(thread_keys uuid[], to_node text)
returns uuid[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    buckets int[] := array(select distinct agui_internal.bucket_of_thread(key) as bucket from unnest(thread_keys) as given (key) order by bucket);
    fenced  uuid[];
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('fence_threads');
    -- Behind this lock no writer is left, and what they wrote is committed.
    perform agui_internal.wait_for_lock(agui_internal.bucket_lock_id(bucket), format('bucket %s of the cluster', bucket))
    from unnest(buckets) as given (bucket);
    update agui_internal.bucket as placed set fenced_in = pg_current_xact_id() where placed.bucket = any (buckets);
    fenced := array(
        select thread.thread_key
        from agui.thread as thread
        where thread.thread_key = any (thread_keys)
            and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
            -- A claim ends when its run begins: the next pass takes the thread.
            and not exists (
                select from agui_internal.claim as claim
                where claim.thread_key = thread.thread_key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
            )
    );
    insert into agui_internal.moved_thread as moved (thread_key, node)
    select key, to_node from unnest(fenced) as given (key)
    on conflict (thread_key) do update
    set node = excluded.node, moved_at = excluded.moved_at;
    return fenced;
end
$$;

comment on function agui_internal.fence_threads is
    'The first step of a move: from the commit on, calls for these threads are sent to the other node '
    '(UI027), which gets them now. Waits for transactions that write to their buckets, for lock_timeout. '
    'Returns the threads that this holds for: those that are here, and of which no run is claimed. '
    '55P03: writers are in the way, 55000: the database is no node.';

-- role: maintainer
create or replace function agui_internal.forget_moved_threads(buckets int[])
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('change the map of the cluster');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('forget_moved_threads');
    -- Behind this lock no thread that was moved here alone, and erased, is born again.
    perform agui_internal.wait_for_lock(agui_internal.bucket_lock_id(alone.bucket), format('bucket %s of the cluster', alone.bucket))
    from (
        select distinct placed.bucket
        from agui_internal.moved_thread as moved
        join agui_internal.bucket as placed
            on placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        where placed.bucket = any (buckets) and placed.node <> moved.node and moved.node = agui_internal.this_node()
        order by placed.bucket
    ) as alone;
    delete from agui_internal.moved_thread as moved
    using agui_internal.bucket as placed
    where placed.bucket = any (buckets)
        and placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        and (
            moved.node = agui_internal.this_node() and placed.node = moved.node
            or not exists (select from agui.thread as thread where thread.thread_key = moved.thread_key)
        );
    return (
        select count(*)
        from agui_internal.moved_thread as moved
        where agui_internal.bucket_of_thread(moved.thread_key) = any (buckets) and moved.node = agui_internal.this_node()
    );
end
$$;

comment on function agui_internal.forget_moved_threads is
    'The end of a move of buckets. The mover calls it on each node, and last on the node that has the '
    'buckets now. All their threads are where the map says, so their rows in agui_internal.moved_thread '
    'go, except for threads whose rows still have to be removed here. Returns how many threads this node '
    'has although the map names another one: the mover has to move them, and call again. 55P03: writers '
    'are in the way, 55000: the database is no node.';

-- role: maintainer
create or replace function agui_internal.hand_over_buckets(buckets int[], to_node text)
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    locked int[];
    given  json;
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('hand_over_buckets');
    -- From here on no thread of these is born. Where a writer is in the way, the next call takes the bucket.
    locked := array(
        select bucket
        from unnest(buckets) as asked (bucket)
        where pg_try_advisory_xact_lock(agui_internal.bucket_lock_id(bucket))
    );
    with used as (
        select bucketed.bucket
        from agui.thread as thread
        left join agui_internal.pinned_scope as pinned
            on pinned.scope_hash = agui_internal.scope_hash(thread.thread_key)
        cross join lateral (select coalesce(pinned.bucket, agui_internal.bucket_of(thread.thread_key)) as bucket) as bucketed
        where bucketed.bucket = any (locked) and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
        union all
        select agui_internal.bucket_of_thread(claim.thread_key)
        from agui_internal.claim as claim
        where agui_internal.bucket_of_thread(claim.thread_key) = any (locked) and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
    ), moved as (
        update agui_internal.bucket as placed
        set node = to_node, epoch = placed.epoch + 1, fenced_in = pg_current_xact_id()
        where placed.bucket = any (locked) and placed.node = agui_internal.this_node() and placed.bucket not in (select used.bucket from used)
        returning placed.bucket, placed.node, placed.epoch
    )
    select json_agg(json_build_object('first', moved.bucket, 'last', moved.bucket, 'node', moved.node, 'epoch', moved.epoch)) into given
    from moved;
    return json_build_object('buckets', coalesce(given, '[]'));
end
$$;

comment on function agui_internal.hand_over_buckets is
    'Gives buckets, whose threads were all moved, to the other node. Returns those that it gave, as in '
    'agui.cluster_map; not those of which threads or claims are here, or that are written to. The '
    'other node refuses new threads of them until it takes the map over '
    '(agui_internal.receive_buckets). 55000: the database is no node.';

-- role: maintainer
create or replace function agui_internal.pin_scope(scope text, bucket int, epoch bigint)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    low  constant uuid := agui_internal.first_key(scope);
    high constant uuid := agui_internal.last_key(scope);
begin
    perform agui_internal.refuse_unless_operator('change the map of the cluster');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('pin_scope');
    -- Behind these locks no writer is left, and no thread of the scope is born. In the order in which
    -- writers take them: first the bucket of the hash, then the one of a pin.
    perform agui_internal.wait_for_lock(agui_internal.bucket_lock_id(number), format('bucket %s of the cluster', number))
    from (
        select number
        from generate_series(0, 1023) as number
        order by exists (select from agui_internal.pinned_scope as pinned where pinned.bucket = number), number
        offset 0
    ) as ordered;
    -- A run that is claimed begins its thread here.
    if exists (
        select from agui_internal.claim as claim
        where claim.thread_key between low and high
            and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
            and agui_internal.node_of(claim.thread_key) = agui_internal.this_node()
            and not exists (select from agui.thread as thread where thread.thread_key = claim.thread_key)
    ) then
        return false;
    end if;
    -- The threads that are here stay here, until they are moved.
    perform agui_internal.keep_threads_of_scope(scope);
    insert into agui_internal.pinned_scope as known (scope_hash, scope, bucket, epoch)
    values (agui_internal.scope_hash(low), pin_scope.scope, pin_scope.bucket, pin_scope.epoch)
    on conflict (scope_hash) do update
    set bucket = excluded.bucket, epoch = excluded.epoch, pinned_at = excluded.pinned_at
    where excluded.epoch > known.epoch;
    update agui_internal.bucket as placed
    set has_pins = exists (select from agui_internal.pinned_scope as pinned where pinned.bucket is not null),
        fenced_in = pg_current_xact_id();
    return true;
end
$$;

comment on function agui_internal.pin_scope is
    'Puts all threads of a scope into one bucket (null: into those of their hashes), as this node knows '
    'it. From the commit on, new threads of it are born on the node of the bucket; the threads that are '
    'here are moved afterwards. The node of the bucket comes last: before that it refuses new ones. '
    'Returns false, and does nothing, while a run of the scope is claimed whose thread is not born. '
    '55P03: writers are in the way, 55000: the database is no node.';

-- role: maintainer
create or replace function agui_internal.keep_threads_of_scope(scope text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    insert into agui_internal.moved_thread as moved (thread_key, node)
    select listed.thread_key, agui_internal.this_node()
    from (
        select thread.thread_key
        from agui.thread as thread
        where thread.thread_key between agui_internal.first_key(keep_threads_of_scope.scope) and agui_internal.last_key(keep_threads_of_scope.scope)
            and not exists (select from agui_internal.moved_thread as noted where noted.thread_key = thread.thread_key)
        offset 0
    ) as listed
    where agui_internal.node_of(listed.thread_key) = agui_internal.this_node()
    on conflict do nothing;
end
$$;

comment on function agui_internal.keep_threads_of_scope is
    'Notes the threads of a scope that are here as moved alone, so that they stay here when the scope is '
    'pinned. Called before agui_internal.pin_scope, which then finds few that are new.';

-- role: maintainer
create or replace function agui_internal.pins()
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list pinned scopes');
    return (
        select coalesce(json_agg(json_build_object('scope', pinned.scope, 'bucket', pinned.bucket, 'epoch', pinned.epoch) order by pinned.scope), '[]')
        from agui_internal.pinned_scope as pinned
    );
end
$$;

comment on function agui_internal.pins is
    'The scopes that are or were pinned, as this node knows it: [{"scope", "bucket", "epoch"}, …]. Of two '
    'copies the greater epoch is the newer one; bucket null: the scope is no longer pinned.';

-- role: maintainer
create or replace function agui_internal.readers_of_thread(thread_key uuid)
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    return json_build_object(
        'marks', (
            select coalesce(json_agg(json_build_object('scope', known.scope, 'is_all', known.is_all, 'consumer', known.consumer, 'read_seq', consumed.read_seq)), '[]')
            from agui_internal.consumer_thread as consumed
            join agui.consumer as known
                on known.consumer_key = consumed.consumer_key
            where consumed.thread_key = readers_of_thread.thread_key
        ),
        'requests', (
            select coalesce(json_agg(request), '[]')
            from agui_internal.webhook_request as request
            where request.thread_key = readers_of_thread.thread_key
        )
    );
end
$$;

comment on function agui_internal.readers_of_thread is
    'What consumers and webhooks have noted of a thread, for agui_internal.receive_readers of the node '
    'that it is moved to.';

-- role: maintainer
create or replace function agui_internal.receive_buckets(map json, elsewhere json, erasures json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('change the map of the cluster');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('receive_buckets');
    insert into agui_internal.moved_thread as known
    select given.* from json_populate_recordset(null::agui_internal.moved_thread, elsewhere) as given
    on conflict (thread_key) do nothing;
    -- Without what readers of changes need: they read the erasure where it was.
    insert into agui.erasure as known (erased_key, erased_at, erased_by, reason, runs, events, allowed_at, allowed_by)
    select given.erased_key, given.erased_at, given.erased_by, given.reason, given.runs, given.events, given.allowed_at, given.allowed_by
    from json_populate_recordset(null::agui.erasure, erasures) as given
    on conflict (erased_key, erased_at) do update
    set allowed_at = excluded.allowed_at, allowed_by = excluded.allowed_by
    where known.allowed_at is null and excluded.allowed_at is not null;
    perform agui_internal.set_buckets(map);
end
$$;

comment on function agui_internal.receive_buckets is
    'The end of a move of buckets, on the node that gets them: takes the newer buckets of a map '
    '(agui.cluster_map) over, after the threads of them that are on other nodes '
    '(agui_internal.threads_elsewhere), and the tombstones (rows of agui.erasure) of the node that had '
    'them, so that what was erased there is refused here. All nodes have one salt. 55000: the database '
    'is no node.';

create or replace function agui_internal.set_buckets(map json)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into agui_internal.bucket as known (bucket, node, epoch)
    select number, placed.node, placed.epoch
    from json_to_recordset(map -> 'buckets') as placed (first int, last int, node text, epoch bigint)
    cross join lateral generate_series(placed.first, placed.last) as number
    on conflict (bucket) do update
    set node = excluded.node, epoch = excluded.epoch
    where excluded.epoch > known.epoch;
    -- What the map says now needs no row of its own.
    delete from agui_internal.moved_thread as moved
    using agui_internal.bucket as placed
    where placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        and placed.node = moved.node
        and moved.node = (select node.name from agui_internal.node as node);
end
$$;

comment on function agui_internal.set_buckets is
    'Takes the newer buckets of a map (agui.cluster_map) over.';

-- role: maintainer
create or replace function agui_internal.receive_readers(thread_key uuid, readers json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    insert into agui_internal.consumer_thread as consumed (thread_key, consumer_key, read_seq)
    select receive_readers.thread_key, known.consumer_key, mark.read_seq
    from json_to_recordset(readers -> 'marks') as mark (scope text, is_all boolean, consumer text, read_seq bigint)
    join agui.consumer as known
        on known.scope = mark.scope and known.is_all = mark.is_all and known.consumer = mark.consumer;
    -- The node that the thread comes from still sends those that wait there. Here they count as sent.
    insert into agui_internal.webhook_request as request (webhook, event_id, thread_key, kind, ended_at, body, attempts, outcome, noted_at)
    select
        noted.webhook, noted.event_id, noted.thread_key, noted.kind, noted.ended_at,
        case when noted.next_at is null then noted.body end, noted.attempts, noted.outcome, noted.noted_at
    from json_populate_recordset(null::agui_internal.webhook_request, readers -> 'requests') as noted
    join agui.webhook as known
        on known.name = noted.webhook
    on conflict on constraint webhook_request_pkey do nothing;
end
$$;

comment on function agui_internal.receive_readers is
    'Takes over what consumers and webhooks have noted of a thread on another node '
    '(agui_internal.readers_of_thread), for those that this node has too. So no event is processed '
    'twice, and no end of a run is sent twice.';

-- role: maintainer
create or replace function agui_internal.receive_thread(scope text, thread_id text, created_at timestamptz)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui.thread_key(scope, thread_id);
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('receive_thread');
    -- An interrupted move has stored it. Since then it may have changed, and even been erased.
    if agui_internal.node_of(key) = agui_internal.this_node() then
        return null;
    end if;
    -- It was here before, and its rows have not been removed yet.
    perform from agui.thread as thread where thread.thread_key = key;
    if found then
        perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(key), format('thread "%s"', thread_id));
        perform agui_internal.delete_thread(key);
    end if;
    insert into agui_internal.moved_thread as moved (thread_key, node)
    values (key, agui_internal.this_node())
    on conflict (thread_key) do update
    set node = excluded.node, moved_at = excluded.moved_at;
    return agui_internal.begin_unarchive(scope, thread_id, created_at);
end
$$;

comment on function agui_internal.receive_thread is
    'The second step of a move, on the other node: agui_internal.begin_unarchive for a thread that from '
    'the commit on is on this node. The transaction goes on as one of an archive. Null: the thread is on '
    'this node already. Errors: those of '
    'agui_internal.begin_unarchive, 55000 the database is no node.';

-- role: maintainer
create or replace function agui_internal.remove_moved_thread(thread_key uuid)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(thread_key), format('the thread with key %s', thread_key));
    perform from agui.thread as thread where thread.thread_key = remove_moved_thread.thread_key for update;
    if not found then
        perform agui_internal.forget_moved_thread(thread_key);
        return true;
    end if;
    if agui_internal.node_of(thread_key) = agui_internal.this_node() then
        raise exception using
            errcode = '55000',
            message = format('the thread with key %s is on this node', thread_key);
    end if;
    -- Requests of webhooks are sent from here: the other node does not have them.
    if exists (
        select from agui_internal.webhook_request as request
        where request.thread_key = remove_moved_thread.thread_key and request.next_at is not null
    ) then
        return false;
    end if;
    perform agui_internal.delete_thread(thread_key);
    delete from agui_internal.webhook_request as request where request.thread_key = remove_moved_thread.thread_key;
    perform agui_internal.forget_moved_thread(thread_key);
    return true;
end
$$;

comment on function agui_internal.remove_moved_thread is
    'The last step of a move: removes the rows of a thread that the other node has, without a '
    'tombstone. Returns false, and removes nothing, while requests of webhooks about it are waiting. '
    '55000: the thread is on this node.';

create or replace function agui_internal.forget_moved_thread(thread_key uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    delete from agui_internal.moved_thread as moved
    using agui_internal.bucket as placed
    where moved.thread_key = forget_moved_thread.thread_key
        and placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        and placed.node = moved.node
$$;

comment on function agui_internal.forget_moved_thread is
    'Removes the row that says where a thread is, if the map says the same.';

-- role: maintainer
create or replace function agui_internal.take_back_thread(thread_key uuid)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform from agui.thread as thread where thread.thread_key = take_back_thread.thread_key;
    if not found then
        raise exception using
            errcode = '55000',
            message = format('the thread with key %s is no longer here, so it cannot be taken back', thread_key);
    end if;
    delete from agui_internal.moved_thread as moved where moved.thread_key = take_back_thread.thread_key;
    -- While the thread was away, its webhooks passed over what had ended (agui_internal.add_webhook_requests).
    update agui.run as run
    set changed_in = pg_current_xact_id()
    where run.thread_key = take_back_thread.thread_key
        and run.ended_at >= (select min(hook.created_at) from agui.webhook as hook);
end
$$;

comment on function agui_internal.take_back_thread is
    'Takes agui_internal.fence_threads back for a thread that the other node did not get. The caller has '
    'made sure of that. Webhooks look at its runs again. 55000: its rows are gone.';

create or replace function agui_internal.hold_next_move()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.wait_for_lock(agui_internal.step_lock_id(), format('node "%s" of the cluster', agui_internal.this_node()), is_shared => true);
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

comment on function agui_internal.hold_next_move is
    'Each step of a move calls it first. The next move begins when the transaction has ended. The commit waits for the '
    'disk: a step that a crash of one node takes back would leave a thread on two nodes, or on none.';

create or replace function agui_internal.step_lock_id()
returns bigint
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return hashtextextended('move threads of a cluster of pgagui', 1);

comment on function agui_internal.step_lock_id is
    'The advisory lock that the steps of moves share until their transactions end, and that a move takes '
    'alone before it begins.';

create or replace function agui_internal.threads_elsewhere(buckets int[], to_node text)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    return (
        select coalesce(json_agg(moved), '[]')
        from agui_internal.moved_thread as moved
        where agui_internal.bucket_of_thread(moved.thread_key) = any (buckets) and moved.node <> to_node
    );
end
$$;

comment on function agui_internal.threads_elsewhere is
    'The threads of buckets that are on a third node, as a list of rows of agui_internal.moved_thread: '
    'the node that gets the buckets has to know them.';

create or replace function agui_internal.threads_here(buckets int[], after_key uuid, max_rows int)
returns table (thread_key uuid, scope text, thread_id text, created_at timestamptz)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list the threads of buckets');
    return query
        select thread.thread_key, thread.scope, thread.thread_id, thread.created_at
        from agui.thread as thread
        left join agui_internal.pinned_scope as pinned
            on pinned.scope_hash = agui_internal.scope_hash(thread.thread_key)
        where thread.thread_key > after_key
            and coalesce(pinned.bucket, agui_internal.bucket_of(thread.thread_key)) = any (buckets)
            and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
        order by thread.thread_key
        limit max_rows;
end
$$;

comment on function agui_internal.threads_here is
    'The threads of buckets that this node has, behind a key, in the order of keys.';

-- role: maintainer
create or replace function agui_internal.threads_of_scope_elsewhere(scope text, to_node text)
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    return (
        select coalesce(json_agg(moved), '[]')
        from agui_internal.moved_thread as moved
        where moved.thread_key between agui_internal.first_key(threads_of_scope_elsewhere.scope) and agui_internal.last_key(threads_of_scope_elsewhere.scope)
            and moved.node <> to_node
    );
end
$$;

comment on function agui_internal.threads_of_scope_elsewhere is
    'As agui_internal.threads_elsewhere, for the threads of a scope.';
