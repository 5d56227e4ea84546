create or replace function agui_internal.keep_threads_of_scope(scope text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    insert into agui_internal.moved_thread as moved (thread_key, node)
    select listed.thread_key, agui_internal.this_node()
    from (
        select thread.thread_key
        from agui.thread as thread
        where thread.thread_key between agui_internal.first_key(keep_threads_of_scope.scope) and agui_internal.last_key(keep_threads_of_scope.scope)
            and not exists (select from agui_internal.moved_thread as noted where noted.thread_key = thread.thread_key)
        offset 0
    ) as listed
    where agui_internal.node_of(listed.thread_key) = agui_internal.this_node()
    on conflict do nothing;
end
$$;

comment on function agui_internal.keep_threads_of_scope(text) is
    'Notes the threads of a scope that are here as moved alone, so that they stay here when the scope is '
    'pinned. Called before agui_internal.pin_scope, which then finds few that are new.';

revoke execute on function agui_internal.keep_threads_of_scope(text) from public;
