create or replace function agui_internal.hold_thread(thread_key uuid)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    perform from agui.thread as thread where thread.thread_key = hold_thread.thread_key for no key update skip locked;
    return found;
end
$$;

comment on function agui_internal.hold_thread(uuid) is
    'Locks the row of a thread, which excludes other jobs until the transaction ends. Appends do '
    'not wait for it. False: another transaction holds the row, or it is gone.';

revoke execute on function agui_internal.hold_thread(uuid) from public;
