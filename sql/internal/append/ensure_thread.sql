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
    -- More than once only where another one makes the row, or erases it, at the same time.
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
        perform agui_internal.checked_thread_key(thread_id, scope);  -- says so
    end if;
    return false;
end
$$;

comment on function agui_internal.ensure_thread(uuid, text, text, timestamptz) is
    'Makes the thread''s row, as of created_at, unless there is one, keeps it from being erased until the transaction ends, and refuses (UI012) a key that stands for another thread or another scope. '
    'Answers whether it made the row.';

revoke execute on function agui_internal.ensure_thread(uuid, text, text, timestamptz) from public;
