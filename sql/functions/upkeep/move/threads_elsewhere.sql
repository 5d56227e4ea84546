create or replace function agui_internal.threads_elsewhere(buckets int[], to_node text)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    return (
        select coalesce(json_agg(moved), '[]')
        from agui_internal.moved_thread as moved
        where agui_internal.bucket_of_thread(moved.thread_key) = any (buckets) and moved.node <> to_node
    );
end
$$;

comment on function agui_internal.threads_elsewhere(int[], text) is
    'The threads of buckets that are on a third node, as a list of rows of agui_internal.moved_thread: '
    'the node that gets the buckets has to know them.';

revoke execute on function agui_internal.threads_elsewhere(int[], text) from public;
