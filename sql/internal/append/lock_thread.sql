create or replace function agui_internal.lock_thread(thread_key uuid)
returns void
language plpgsql
volatile
-- Every append calls it: to pin the search path would take longer than the lock. So every name in it is qualified.
as $$
begin
    -- Where nobody holds the lock, this is an expression and no query.
    if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) then
        perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(thread_key), 'the thread with key ' operator(pg_catalog.||) thread_key::pg_catalog.text);
    end if;
    if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
        -- Here the caller's snapshot may be older than the lock. Whoever rewrites batches updates this row, so an outdated snapshot
        -- gets 40001; where batches were appended since, the caller's own insert or update gets the same.
        perform from agui.thread as thread where thread.thread_key operator(pg_catalog.=) lock_thread.thread_key for no key update;
    end if;
end
$$;

comment on function agui_internal.lock_thread(uuid) is
    'Takes the lock of whoever writes to a thread''s log, until the transaction ends. It is to be called in a statement of its own: under '
    'READ COMMITTED the next statement then sees all that the last holder did. 55P03 as agui_internal.wait_for_lock says.';

revoke execute on function agui_internal.lock_thread(uuid) from public;
