create or replace function agui_internal.uid_of_thread(thread_key uuid, thread_uid uuid)
returns uuid
language sql
stable
parallel safe
-- Inlined, because a page of changes calls it for each row.
return coalesce(thread_uid, agui_internal.erasure_key(thread_key));

comment on function agui_internal.uid_of_thread(uuid, uuid) is
    'The id by which copies recognize a thread once it is erased: agui.thread.thread_uid; for a thread '
    'from before there was one, its key in agui.erasure. For the owner only, as agui_internal.erasure_key.';

revoke execute on function agui_internal.uid_of_thread(uuid, uuid) from public;
