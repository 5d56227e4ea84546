create or replace function agui_internal.lock_thread(thread_key uuid)
returns void
language plpgsql
volatile
-- Every append calls this function, and pinning the search path would take longer than the lock. So
-- every name is qualified.
as $$
begin
    -- If the lock is free, this is an expression and not a query.
    if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) then
        perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(thread_key), 'the thread with key ' operator(pg_catalog.||) thread_key::pg_catalog.text);
    end if;
    if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
        -- Here the snapshot of the caller may be older than the lock. A transaction that rewrites
        -- batches updates this row, so an outdated snapshot fails with 40001. If batches were
        -- appended since, the insert or update of the caller fails with the same error.
        perform from agui.thread as thread where thread.thread_key operator(pg_catalog.=) lock_thread.thread_key for no key update;
    end if;
end
$$;

comment on function agui_internal.lock_thread(uuid) is
    'Takes the lock that every writer of the log of a thread holds until its transaction ends. '
    'Call it in a separate statement: under READ COMMITTED the next statement then sees all that '
    'the last holder wrote. 55P03 as in agui_internal.wait_for_lock.';

revoke execute on function agui_internal.lock_thread(uuid) from public;
