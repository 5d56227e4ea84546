create or replace function agui_internal.ensure_writable_thread(thread_id text, scope text)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui.thread_key(scope, thread_id);
begin
    if thread_id is null or thread_id = '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'a thread needs an id that is not empty, and a scope that is not null';
    end if;
    if greatest(octet_length(thread_id), octet_length(scope)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('thread "%s": thread id and scope may be 1,024 bytes long at most', left(thread_id, 200));
    end if;
    if agui_internal.ensure_thread(key, scope, thread_id) then
        perform agui_internal.rebuild_activity(key);
    end if;
    -- After that, for from now on nobody can erase it.
    perform agui_internal.refuse_erased(key, format('thread "%s"', thread_id));
    return key;
end
$$;

comment on function agui_internal.ensure_writable_thread(text, text) is
    'The key of a thread that something is saved in beside its log: makes its row, with its place in lists, unless there is one, and keeps it from being erased until the transaction '
    'ends. UI008: no id, UI011: ids too long, UI014: the thread was erased.';

revoke execute on function agui_internal.ensure_writable_thread(text, text) from public;
