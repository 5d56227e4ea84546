create or replace function agui_internal.visible_thread_key(scope text, thread_id text)
returns uuid
language sql
stable
-- Inlined, as agui_internal.own_thread_key.
return case
    when agui_internal.this_node() is not null then agui_internal.key_on_this_node(scope, thread_id, changes => false)
    when agui_internal.has_row_security() then agui_internal.visible_key(agui.thread_key(scope, thread_id))
    else agui.thread_key(scope, thread_id)
end;

comment on function agui_internal.visible_thread_key(text, text) is
    'The key by which a function that reads finds a thread, which need not exist: agui.thread_key, '
    'or null if row-level security is on and the calling role does not have the scope. So a thread '
    'of another scope counts as missing. UI027: another node of the cluster has the thread.';

revoke execute on function agui_internal.visible_thread_key(text, text) from public;
