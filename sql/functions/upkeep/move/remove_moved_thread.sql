create or replace function agui_internal.remove_moved_thread(thread_key uuid)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(thread_key), format('the thread with key %s', thread_key));
    perform from agui.thread as thread where thread.thread_key = remove_moved_thread.thread_key for update;
    if not found then
        perform agui_internal.forget_moved_thread(thread_key);
        return true;
    end if;
    if agui_internal.node_of(thread_key) = agui_internal.this_node() then
        raise exception using
            errcode = '55000',
            message = format('the thread with key %s is on this node', thread_key);
    end if;
    -- Requests of webhooks are sent from here: the other node does not have them.
    if exists (
        select from agui_internal.webhook_request as request
        where request.thread_key = remove_moved_thread.thread_key and request.next_at is not null
    ) then
        return false;
    end if;
    perform agui_internal.delete_thread(thread_key);
    delete from agui_internal.webhook_request as request where request.thread_key = remove_moved_thread.thread_key;
    perform agui_internal.forget_moved_thread(thread_key);
    return true;
end
$$;

comment on function agui_internal.remove_moved_thread(uuid) is
    'The last step of a move: removes the rows of a thread that the other node has, without a '
    'tombstone. Returns false, and removes nothing, while requests of webhooks about it are waiting. '
    '55000: the thread is on this node.';

revoke execute on function agui_internal.remove_moved_thread(uuid) from public;
