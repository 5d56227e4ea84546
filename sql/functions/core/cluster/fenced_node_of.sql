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

comment on function agui_internal.fenced_node_of(uuid) is
    'The node of a thread, which need not exist. Neither the thread nor its bucket moves before the '
    'transaction ends. For writers. 55P03 as in agui_internal.wait_for_lock; 40001: it was moved '
    'since the snapshot of the transaction.';

revoke execute on function agui_internal.fenced_node_of(uuid) from public;
