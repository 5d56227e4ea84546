create or replace procedure agui.leave_cluster()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    own constant text := (select node.name from agui_internal.node as node);
begin
    if not pg_try_advisory_xact_lock(agui_internal.move_lock_id()) then
        raise exception using
            errcode = '55000',
            message = format('a move of the cluster is in progress on node "%s"', own),
            hint = 'Call agui.leave_cluster() again when it has ended.';
    end if;
    -- Behind this lock no step of an interrupted move is left.
    perform agui_internal.wait_for_lock(agui_internal.step_lock_id(), format('node "%s" of the cluster', own));
    -- An empty node stays one: a program that has not heard of the moves would begin threads here.
    if exists (select from agui_internal.bucket as placed where placed.node is distinct from own)
        or exists (select from agui_internal.moved_thread as moved where moved.node is distinct from own)
    then
        raise exception using
            errcode = '55000',
            message = format('other nodes have threads of the cluster that node "%s" does not have', own),
            hint = 'Move all buckets to the node that is to stay ("pgagui cluster move"), leave the cluster there, and drop the other databases.';
    end if;
    delete from agui_internal.moved_thread;
    delete from agui_internal.bucket;
    delete from agui_internal.pinned_scope;
    delete from agui_internal.node;
    perform agui_internal.set_node(null);
end
$$;

comment on procedure agui.leave_cluster() is
    'Makes the database an ordinary one again, if it has all buckets and threads of the cluster. For the '
    'owner. Errors: 55000 other nodes have some, or a move is in progress; 55P03 a step of an interrupted move is '
    'not committed yet.';

revoke execute on procedure agui.leave_cluster() from public;
