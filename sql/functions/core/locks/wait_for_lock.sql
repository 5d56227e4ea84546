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

comment on function agui_internal.wait_for_lock(bigint, text, boolean) is
    'Takes an advisory lock, alone or shared, until the transaction ends. Waits for lock_timeout, at most 5 '
    'seconds, because any role that can connect may hold the lock. 55P03: the lock is still held, '
    'and the message names the holder.';

revoke execute on function agui_internal.wait_for_lock(bigint, text, boolean) from public;
