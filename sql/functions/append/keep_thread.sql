create or replace function agui.keep_thread(thread_key uuid, scope text, thread_id text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into agui.thread (thread_key, scope, thread_id)
    values (keep_thread.thread_key, keep_thread.scope, keep_thread.thread_id)
    on conflict do nothing;
    if not found then
        perform
        from agui.thread as thread
        where thread.thread_key = keep_thread.thread_key
            and thread.scope = keep_thread.scope
            and thread.thread_id = keep_thread.thread_id;
        if not found then
            raise exception using
                errcode = 'AG012',
                message = format('thread "%s" of scope "%s" has the same key as another thread', thread_id, scope),
                hint = 'Two ids with the same 128-bit hash: choose another thread id.';
        end if;
    end if;
end
$$;

comment on function agui.keep_thread(uuid, text, text) is
    'Makes the thread''s row when its first run begins, and refuses (AG012) a key that stands for another thread.';

revoke execute on function agui.keep_thread(uuid, text, text) from public;
