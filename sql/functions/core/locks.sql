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

comment on function agui_internal.lock_thread is
    'Takes the lock that every writer of the log of a thread holds until its transaction ends, and '
    'returns true. Call it before the statement that reads the log: under READ COMMITTED this then '
    'sees all that the last holder wrote. 55P03 as in agui_internal.wait_for_lock.';

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

comment on function agui_internal.wait_for_thread is
    'The part of agui_internal.lock_thread for a lock that is taken, and for the other isolation '
    'levels.';

create or replace function agui_internal.wait_for_lock(lock_id bigint, subject text, is_shared boolean default false)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    most_ms    constant int := 5000;
    timeout    text;
    timeout_ms int;
begin
    -- Usually the lock is free. To wait for it takes a hundred times as long, however short the wait is.
    if (case when is_shared then pg_try_advisory_xact_lock_shared(lock_id) else pg_try_advisory_xact_lock(lock_id) end) then
        return;
    end if;
    timeout := current_setting('lock_timeout');
    timeout_ms := least(nullif(extract(epoch from timeout::interval) * 1000, 0), most_ms);
    perform set_config('lock_timeout', timeout_ms::text, true);
    begin
        if is_shared then
            perform pg_advisory_xact_lock_shared(lock_id);
        else
            perform pg_advisory_xact_lock(lock_id);
        end if;
    exception
        when lock_not_available then
            raise exception using
                errcode = '55P03',
                message = format('%s is locked: %s has held the lock for at least %s ms', subject, agui_internal.lock_holders(lock_id), timeout_ms),
                hint = 'Repeat the call after that transaction has ended, or end it with pg_terminate_backend. The wait is lock_timeout, at most 5 seconds.';
    end;
    perform set_config('lock_timeout', timeout, true);
end
$$;

comment on function agui_internal.wait_for_lock is
    'Takes an advisory lock, alone or shared, until the transaction ends. Waits for lock_timeout, at most 5 '
    'seconds, because any role that can connect may hold the lock. 55P03: the lock is still held, '
    'and the message names the holder.';

create or replace function agui_internal.lock_holders(lock_id bigint)
returns text
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        string_agg(distinct case
            when lock.pid is null then 'a prepared transaction'
            else format('process %s of role "%s"', lock.pid, session.usename)
        end, ', '),
        'another transaction'
    )
    from pg_locks as lock
    left join pg_stat_activity as session
        on session.pid = lock.pid
    where lock.locktype = 'advisory'
        and lock.database = (select oid from pg_database where datname = current_database())
        and lock.classid = ((lock_id >> 32) & 4294967295)::oid
        and lock.objid = (lock_id & 4294967295)::oid
        and lock.objsubid = 1
        and lock.granted
        and lock.pid is distinct from pg_backend_pid()
$$;

comment on function agui_internal.lock_holders is
    'Describes the holders of an advisory lock of this database, for an error text. Any role that '
    'can connect may take one.';

create or replace function agui_internal.thread_lock_id(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed ("agui" in ASCII) separates the locks of pgagui from other 64-bit advisory locks in the
-- database.
return uuid_hash_extended(thread_key, x'61677569'::bigint);

comment on function agui_internal.thread_lock_id is
    'The transaction-level advisory lock that every writer of the log of a thread takes first.';
