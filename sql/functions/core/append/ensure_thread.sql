create or replace function agui_internal.ensure_thread(
    thread_key uuid,
    scope      text,
    thread_id  text,
    created_at timestamptz default clock_timestamp()
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    kept agui.thread;
begin
    -- Loops only if another transaction creates or erases the row at the same time.
    loop
        select * into kept from agui.thread as thread where thread.thread_key = ensure_thread.thread_key for key share;
        exit when found;
        perform agui_internal.refuse_scope_collision(scope);
        insert into agui.thread (thread_key, scope, thread_id, created_at)
        values (ensure_thread.thread_key, ensure_thread.scope, ensure_thread.thread_id, ensure_thread.created_at)
        on conflict do nothing;
        if found then
            return true;
        end if;
    end loop;
    if kept.scope <> scope or kept.thread_id <> thread_id then
        perform agui_internal.checked_thread_key(thread_id, scope);  -- raises the error
    end if;
    return false;
end
$$;

comment on function agui_internal.ensure_thread(uuid, text, text, timestamptz) is
    'Creates the row of a thread, with created_at, if it is missing, and protects it from erasure '
    'until the transaction ends. Returns whether it created the row. Raises UI012 if the key '
    'belongs to another thread or scope.';

revoke execute on function agui_internal.ensure_thread(uuid, text, text, timestamptz) from public;
