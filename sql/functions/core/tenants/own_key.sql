create or replace function agui_internal.own_key(thread_key uuid)
returns uuid
language sql
stable
return case
    when agui_internal.has_row_security()
        then coalesce(agui_internal.visible_key(thread_key), agui_internal.refuse_foreign(thread_key, null))
    else thread_key
end;

comment on function agui_internal.own_key(uuid) is
    'The key of a thread, which need not exist, that the calling role may change. A function with '
    'the rights of the owner that writes calls this one, or agui_internal.own_thread_key, before '
    'it looks anything up. 42501: row-level security is on, and the key belongs to another scope.';

revoke execute on function agui_internal.own_key(uuid) from public;
