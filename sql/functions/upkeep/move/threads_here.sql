create or replace function agui_internal.threads_here(buckets int[], after_key uuid, max_rows int)
returns table (thread_key uuid, scope text, thread_id text, created_at timestamptz)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list the threads of buckets');
    return query
        select thread.thread_key, thread.scope, thread.thread_id, thread.created_at
        from agui.thread as thread
        left join agui_internal.pinned_scope as pinned
            on pinned.scope_hash = agui_internal.scope_hash(thread.thread_key)
        where thread.thread_key > after_key
            and coalesce(pinned.bucket, agui_internal.bucket_of(thread.thread_key)) = any (buckets)
            and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
        order by thread.thread_key
        limit max_rows;
end
$$;

comment on function agui_internal.threads_here(int[], uuid, int) is
    'The threads of buckets that this node has, behind a key, in the order of keys.';

revoke execute on function agui_internal.threads_here(int[], uuid, int) from public;
