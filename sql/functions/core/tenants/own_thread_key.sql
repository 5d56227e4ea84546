create or replace function agui_internal.own_thread_key(scope text, thread_id text)
returns uuid
language sql
stable
-- Inlined: without row-level security, and outside of a cluster, this is agui.thread_key.
return case
    when agui_internal.this_node() is not null then agui_internal.key_on_this_node(scope, thread_id, changes => true)
    when agui_internal.has_row_security()
        then coalesce(
            agui_internal.visible_key(agui.thread_key(scope, thread_id)),
            agui_internal.refuse_foreign(agui.thread_key(scope, thread_id), scope)
        )
    else agui.thread_key(scope, thread_id)
end;

comment on function agui_internal.own_thread_key(text, text) is
    'agui.thread_key of a thread, which need not exist, that the calling role may change. 42501: '
    'row-level security is on, and the role does not have the scope; UI027: another node of the '
    'cluster has the thread.';

revoke execute on function agui_internal.own_thread_key(text, text) from public;
