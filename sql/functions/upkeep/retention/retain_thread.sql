create or replace function agui_internal.retain_thread(thread_key uuid, action text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due agui_internal.due_thread;
begin
    perform agui_internal.own_key(thread_key);
    -- A job does not wait for other transactions. Nothing is appended to the thread from here on.
    if not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) then
        raise exception using
            errcode = '55P03',
            message = format('the thread with key %s is locked by %s', thread_key, agui_internal.lock_holders(agui_internal.thread_lock_id(thread_key)));
    end if;
    perform set_config('lock_timeout', '200ms', true);
    perform from agui.thread as thread where thread.thread_key = retain_thread.thread_key for update;

    -- The rule, the hold and the activity as they are now.
    select * into due
    from agui_internal.due_actions(thread_key) as listed
    where listed.action = retain_thread.action;
    if due.thread_key is null or due.kept_because is not null then
        return false;
    end if;

    case action
        when 'archive' then
            update agui.thread_activity as listed set archived = true where listed.thread_key = retain_thread.thread_key;
        when 'remove_checkpoints' then
            perform agui_internal.delete_checkpoints(thread_key);
        when 'erase' then
            return (agui_internal.erase_thread(thread_key, format('retention: no activity for %s', due.older_than), due.older_than)).erased_key is not null;
    end case;
    return true;
end
$$;

comment on function agui_internal.retain_thread(uuid, text) is
    'Does an action of agui.retention to a thread, if it is due under the lock of the thread. Returns '
    'whether it did. 55P03: another transaction holds the thread.';

revoke execute on function agui_internal.retain_thread(uuid, text) from public;
