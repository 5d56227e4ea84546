create or replace function agui_internal.threads_of_scope_elsewhere(scope text, to_node text)
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    return (
        select coalesce(json_agg(moved), '[]')
        from agui_internal.moved_thread as moved
        where moved.thread_key between agui_internal.first_key(threads_of_scope_elsewhere.scope) and agui_internal.last_key(threads_of_scope_elsewhere.scope)
            and moved.node <> to_node
    );
end
$$;

comment on function agui_internal.threads_of_scope_elsewhere(text, text) is
    'As agui_internal.threads_elsewhere, for the threads of a scope.';

revoke execute on function agui_internal.threads_of_scope_elsewhere(text, text) from public;
