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

comment on function agui_internal.pin_scope(text, int, bigint) is
    'Puts all threads of a scope into one bucket (null: into those of their hashes), as this node knows '
    'it. From the commit on, new threads of it are born on the node of the bucket; the threads that are '
    'here are moved afterwards. The node of the bucket comes last: before that it refuses new ones. '
    'Returns false, and does nothing, while a run of the scope is claimed whose thread is not born. '
    '55P03: writers are in the way, 55000: the database is no node.';

revoke execute on function agui_internal.pin_scope(text, int, bigint) from public;
