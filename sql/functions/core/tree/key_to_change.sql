create or replace function agui_internal.key_to_change(thread_id text, scope text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.own_thread_key(scope, thread_id);
begin
    perform
    from agui.thread as thread
    where thread.thread_key = key and (thread.scope <> key_to_change.scope or thread.thread_id <> key_to_change.thread_id);
    if found then
        perform agui_internal.checked_thread_key(thread_id, scope);  -- raises the error
    end if;
    return key;
end
$$;

comment on function agui_internal.key_to_change(text, text) is
    'The key of a thread, which need not exist, that the calling role may change. 42501: the role '
    'does not have the scope; UI012: the key belongs to another thread.';

revoke execute on function agui_internal.key_to_change(text, text) from public;
