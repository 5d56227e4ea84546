create or replace function agui_internal.checked_thread_key(thread_id text, scope text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.visible_thread_key(scope, thread_id);
begin
    perform
    from agui.thread as thread
    where thread.thread_key = key
        and (thread.scope <> checked_thread_key.scope or thread.thread_id <> checked_thread_key.thread_id);
    if found then
        raise exception using
            errcode = 'UI012',
            message = format('thread "%s" of scope "%s" has the same key as another thread', thread_id, scope),
            hint = 'The two ids have the same 128-bit hash. Use another thread id.';
    end if;
    return key;
end
$$;

comment on function agui_internal.checked_thread_key(text, text) is
    'agui.thread_key of a thread, which need not exist. UI012: the key belongs to another thread.';

revoke execute on function agui_internal.checked_thread_key(text, text) from public;
