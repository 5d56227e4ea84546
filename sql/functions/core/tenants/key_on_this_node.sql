create or replace function agui_internal.key_on_this_node(scope text, thread_id text, changes boolean)
returns uuid
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key  constant uuid := agui.thread_key(scope, thread_id);
    node text;
begin
    if agui_internal.visible_key(key) is null then
        return case when changes then agui_internal.refuse_foreign(key, scope) end;
    end if;
    if thread_id = '' then
        return key;  -- no thread: the caller asks for the scope
    end if;
    -- What changes a thread keeps it here until its transaction ends. What reads it sees it whole, if
    -- its snapshot sees that it is here.
    node := case when changes then agui_internal.fenced_node_of(key) else agui_internal.node_of(key) end;
    if node <> agui_internal.this_node() then
        return agui_internal.refuse_moved(json_build_array(agui_internal.place_of_thread(key, scope, thread_id)));
    end if;
    return key;
end
$$;

comment on function agui_internal.key_on_this_node(text, text, boolean) is
    'What agui_internal.own_thread_key (changes) and agui_internal.visible_thread_key return on a node of '
    'a cluster. UI027: another node has the thread.';

revoke execute on function agui_internal.key_on_this_node(text, text, boolean) from public;
