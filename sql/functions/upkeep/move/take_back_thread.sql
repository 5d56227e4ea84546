create or replace function agui_internal.take_back_thread(thread_key uuid)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform from agui.thread as thread where thread.thread_key = take_back_thread.thread_key;
    if not found then
        raise exception using
            errcode = '55000',
            message = format('the thread with key %s is no longer here, so it cannot be taken back', thread_key);
    end if;
    delete from agui_internal.moved_thread as moved where moved.thread_key = take_back_thread.thread_key;
    -- While the thread was away, its webhooks passed over what had ended (agui_internal.add_webhook_requests).
    update agui.run as run
    set changed_in = pg_current_xact_id()
    where run.thread_key = take_back_thread.thread_key
        and run.ended_at >= (select min(hook.created_at) from agui.webhook as hook);
end
$$;

comment on function agui_internal.take_back_thread(uuid) is
    'Takes agui_internal.fence_threads back for a thread that the other node did not get. The caller has '
    'made sure of that. Webhooks look at its runs again. 55000: its rows are gone.';

revoke execute on function agui_internal.take_back_thread(uuid) from public;
