create or replace function agui_internal.forget_moved_threads(buckets int[])
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('change the map of the cluster');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('forget_moved_threads');
    -- Behind this lock no thread that was moved here alone, and erased, is born again.
    perform agui_internal.wait_for_lock(agui_internal.bucket_lock_id(alone.bucket), format('bucket %s of the cluster', alone.bucket))
    from (
        select distinct placed.bucket
        from agui_internal.moved_thread as moved
        join agui_internal.bucket as placed
            on placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        where placed.bucket = any (buckets) and placed.node <> moved.node and moved.node = agui_internal.this_node()
        order by placed.bucket
    ) as alone;
    delete from agui_internal.moved_thread as moved
    using agui_internal.bucket as placed
    where placed.bucket = any (buckets)
        and placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        and (
            moved.node = agui_internal.this_node() and placed.node = moved.node
            or not exists (select from agui.thread as thread where thread.thread_key = moved.thread_key)
        );
    return (
        select count(*)
        from agui_internal.moved_thread as moved
        where agui_internal.bucket_of_thread(moved.thread_key) = any (buckets) and moved.node = agui_internal.this_node()
    );
end
$$;

comment on function agui_internal.forget_moved_threads(int[]) is
    'The end of a move of buckets. The mover calls it on each node, and last on the node that has the '
    'buckets now. All their threads are where the map says, so their rows in agui_internal.moved_thread '
    'go, except for threads whose rows still have to be removed here. Returns how many threads this node '
    'has although the map names another one: the mover has to move them, and call again. 55P03: writers '
    'are in the way, 55000: the database is no node.';

revoke execute on function agui_internal.forget_moved_threads(int[]) from public;
