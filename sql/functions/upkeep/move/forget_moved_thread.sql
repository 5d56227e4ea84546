create or replace function agui_internal.forget_moved_thread(thread_key uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    delete from agui_internal.moved_thread as moved
    using agui_internal.bucket as placed
    where moved.thread_key = forget_moved_thread.thread_key
        and placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        and placed.node = moved.node
$$;

comment on function agui_internal.forget_moved_thread(uuid) is
    'Removes the row that says where a thread is, if the map says the same.';

revoke execute on function agui_internal.forget_moved_thread(uuid) from public;
