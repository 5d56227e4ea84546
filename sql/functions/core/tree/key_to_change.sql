create or replace function agui_internal.key_to_change(thread_id text, scope text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_thread_key(scope, thread_id);
    return agui_internal.checked_thread_key(thread_id, scope);
end
$$;

comment on function agui_internal.key_to_change(text, text) is
    'The key of a thread, which need not exist, that the calling role may change. 42501: the role '
    'does not have the scope; UI012: the key belongs to another thread.';

revoke execute on function agui_internal.key_to_change(text, text) from public;
