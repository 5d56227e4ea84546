create or replace function agui_internal.receive_thread(scope text, thread_id text, created_at timestamptz)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui.thread_key(scope, thread_id);
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('receive_thread');
    -- An interrupted move has stored it. Since then it may have changed, and even been erased.
    if agui_internal.node_of(key) = agui_internal.this_node() then
        return null;
    end if;
    -- It was here before, and its rows have not been removed yet.
    perform from agui.thread as thread where thread.thread_key = key;
    if found then
        perform agui_internal.wait_for_lock(agui_internal.thread_lock_id(key), format('thread "%s"', thread_id));
        perform agui_internal.delete_thread(key);
    end if;
    insert into agui_internal.moved_thread as moved (thread_key, node)
    values (key, agui_internal.this_node())
    on conflict (thread_key) do update
    set node = excluded.node, moved_at = excluded.moved_at;
    return agui_internal.begin_unarchive(scope, thread_id, created_at);
end
$$;

comment on function agui_internal.receive_thread(text, text, timestamptz) is
    'The second step of a move, on the other node: agui_internal.begin_unarchive for a thread that from '
    'the commit on is on this node. The transaction goes on as one of an archive. Null: the thread is on '
    'this node already. Errors: those of '
    'agui_internal.begin_unarchive, 55000 the database is no node.';

revoke execute on function agui_internal.receive_thread(text, text, timestamptz) from public;
