create or replace function agui_internal.wait_for_thread(thread_key uuid)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(thread_key), format('the thread with key %s', thread_key));
    if current_setting('transaction_isolation') <> 'read committed' then
        -- Here the snapshot of the caller may be older than the lock. A transaction that rewrites
        -- batches updates this row, so an outdated snapshot fails with 40001. If batches were
        -- appended since, the insert or update of the caller fails with the same error.
        perform from agui.thread as thread where thread.thread_key = wait_for_thread.thread_key for no key update;
    end if;
    return true;
end
$$;

comment on function agui_internal.wait_for_thread(uuid) is
    'The part of agui_internal.lock_thread for a lock that is taken, and for the other isolation '
    'levels.';

revoke execute on function agui_internal.wait_for_thread(uuid) from public;
