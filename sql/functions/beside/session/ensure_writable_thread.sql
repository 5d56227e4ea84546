create or replace function agui_internal.ensure_writable_thread(thread_id text, scope text)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.own_thread_key(scope, thread_id);
begin
    if thread_id is null or thread_id = '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'thread_id must not be empty, and scope must not be null';
    end if;
    if greatest(octet_length(thread_id), octet_length(scope)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('thread "%s": thread id and scope are limited to 1,024 bytes each', left(thread_id, 200));
    end if;
    if agui_internal.ensure_thread(key, scope, thread_id) then
        perform agui_internal.rebuild_activity(key);
    end if;
    -- Checked last, because from now on the thread cannot be erased.
    perform agui_internal.refuse_erased(key, format('thread "%s"', thread_id));
    return key;
end
$$;

comment on function agui_internal.ensure_writable_thread(text, text) is
    'Returns the key of a thread in which something is saved beside its log. Creates its row, with '
    'its entry in lists, if it is missing, and protects it from erasure until the transaction '
    'ends. UI008: no id; UI011: ids too long; UI014: the thread was erased.';

revoke execute on function agui_internal.ensure_writable_thread(text, text) from public;
