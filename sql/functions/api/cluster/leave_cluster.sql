create or replace procedure agui.leave_cluster()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from agui_internal.bucket as placed
        where placed.node is distinct from agui_internal.this_node()
    ) and exists (select from agui.thread as thread where agui_internal.node_of(thread.thread_key) = agui_internal.this_node()) then
        raise exception using
            errcode = '55000',
            message = format('node "%s" has threads, and other nodes have the rest', agui_internal.this_node()),
            hint = 'Move the buckets of this node away, or those of all others here: "pgagui cluster move".';
    end if;
    delete from agui_internal.moved_thread;
    delete from agui_internal.bucket;
    delete from agui_internal.node;
    perform agui_internal.set_node(null);
end
$$;

comment on procedure agui.leave_cluster() is
    'Makes the database an ordinary one again: it has all threads, or none. For the owner. '
    'Errors: 55000 it has some of the threads of the cluster.';

revoke execute on procedure agui.leave_cluster() from public;
