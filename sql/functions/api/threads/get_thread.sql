create or replace function agui.get_thread(thread_id text, scope text default '')
returns agui.thread_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key    constant uuid := agui_internal.checked_thread_key(thread_id, scope);
    thread agui.thread_row;
begin
    select shown.* into thread
    from agui.thread_activity as activity
    cross join agui_internal.show_threads(array[activity], scope) as shown
    where activity.thread_key = key;
    if not found then
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, ' in scope "' || nullif(scope, '') || '"'),
            hint = 'Is it in another scope?';
    end if;
    return thread;
end
$$;

comment on function agui.get_thread(text, text) is
    'Returns a thread as agui.threads shows it. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.get_thread(text, text) from public;
