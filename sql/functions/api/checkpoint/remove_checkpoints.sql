create or replace function agui.remove_checkpoints(thread_id text, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key     uuid := agui_internal.own_thread_key(scope, thread_id);
    removed bigint;
begin
    if thread_id is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'to remove checkpoints, thread_id and scope must not be null';
    end if;
    perform agui_internal.checked_thread_key(thread_id, scope);
    -- Nothing is saved in the thread meanwhile.
    perform from agui.thread as thread where thread.thread_key = key for update;
    removed := (select count(*) from agui.checkpoint as checkpoint where checkpoint.thread_key = key and checkpoint.document is not null);
    perform agui_internal.delete_checkpoints(key);
    return removed;
end
$$;

comment on function agui.remove_checkpoints(text, text) is
    'Removes all checkpoints of a thread, with their values and writes, and returns their number. The '
    'log of the thread stays, and new checkpoints can be saved; agui.erase removes a thread for good. '
    'Errors: UI008 no thread or scope, UI012 another thread has the same key.';

revoke execute on function agui.remove_checkpoints(text, text) from public;
