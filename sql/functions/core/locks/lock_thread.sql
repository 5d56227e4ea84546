create or replace function agui_internal.lock_thread(thread_key uuid)
returns boolean
language sql
volatile
-- Inlined: if the lock is free, as it usually is, this takes no call and no query.
return case
    when pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) and current_setting('transaction_isolation') = 'read committed'
        then true
    else agui_internal.wait_for_thread(thread_key)
end;

comment on function agui_internal.lock_thread(uuid) is
    'Takes the lock that every writer of the log of a thread holds until its transaction ends, and '
    'returns true. Call it before the statement that reads the log: under READ COMMITTED this then '
    'sees all that the last holder wrote. 55P03 as in agui_internal.wait_for_lock.';

revoke execute on function agui_internal.lock_thread(uuid) from public;
