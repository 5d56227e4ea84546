create or replace function agui_internal.wait_for_lock(lock_id bigint, subject text, is_shared boolean default false)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    most_ms    constant int := 5000;
    timeout    constant text := current_setting('lock_timeout');
    timeout_ms constant int := least(nullif((select setting::int from pg_settings where name = 'lock_timeout'), 0), most_ms);
begin
    perform set_config('lock_timeout', timeout_ms::text, true);
    if is_shared then
        perform pg_advisory_xact_lock_shared(lock_id);
    else
        perform pg_advisory_xact_lock(lock_id);
    end if;
    perform set_config('lock_timeout', timeout, true);
exception
    when lock_not_available then
        raise exception using
            errcode = '55P03',
            message = format('%s is locked: %s has held the lock for at least %s ms', subject, agui_internal.lock_holders(lock_id), timeout_ms),
            hint = 'Repeat the call after that transaction has ended, or end it with pg_terminate_backend. The wait is lock_timeout, at most 5 seconds.';
end
$$;

comment on function agui_internal.wait_for_lock(bigint, text, boolean) is
    'Takes an advisory lock, alone or shared, until the transaction ends. Waits for lock_timeout, at most 5 '
    'seconds, because any role that can connect may hold the lock. 55P03: the lock is still held, '
    'and the message names the holder.';

revoke execute on function agui_internal.wait_for_lock(bigint, text, boolean) from public;
