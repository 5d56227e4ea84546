create or replace function agui_internal.fenced_node_of(thread_key uuid)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bucket_no constant int := agui_internal.bucket_of(thread_key);
    lock      constant bigint := agui_internal.bucket_lock_id(bucket_no);
begin
    if not pg_try_advisory_xact_lock_shared(lock) then
        perform agui_internal.wait_for_lock(lock, format('bucket %s of the cluster', bucket_no), is_shared => true);
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- The snapshot of the caller may be older than the lock. A move updates this row, so an
        -- outdated snapshot fails with 40001.
        perform from agui_internal.bucket as placed where placed.bucket = bucket_no for share;
    end if;
    -- A statement of its own, whose snapshot is younger than the lock.
    return coalesce(
        (select moved.node from agui_internal.moved_thread as moved where moved.thread_key = fenced_node_of.thread_key),
        (select placed.node from agui_internal.bucket as placed where placed.bucket = bucket_no)
    );
end
$$;

comment on function agui_internal.fenced_node_of(uuid) is
    'The node of a thread, which need not exist. Neither the thread nor its bucket moves before the '
    'transaction ends. For writers. 55P03 as in agui_internal.wait_for_lock; 40001: it was moved '
    'since the snapshot of the transaction.';

revoke execute on function agui_internal.fenced_node_of(uuid) from public;
