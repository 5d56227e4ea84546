create or replace function agui_internal.delete_thread(thread_key uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui.projected_call as call where call.thread_key = delete_thread.thread_key;
    delete from agui.projected_interrupt as interrupt where interrupt.thread_key = delete_thread.thread_key;
    delete from agui.projected_usage as usage where usage.thread_key = delete_thread.thread_key;
    delete from agui.message_text as said where said.thread_key = delete_thread.thread_key;
    delete from agui.projected_run as projected where projected.thread_key = delete_thread.thread_key;
    delete from agui.snapshot as snapshot where snapshot.thread_key = delete_thread.thread_key;
    delete from agui.message_version as message where message.thread_key = delete_thread.thread_key;
    perform agui_internal.delete_checkpoints(thread_key);
    delete from agui.session_state as state where state.thread_key = delete_thread.thread_key;
    delete from agui.session_key as known where known.thread_key = delete_thread.thread_key;
    delete from agui_internal.consumer_thread as consumed where consumed.thread_key = delete_thread.thread_key;
    delete from agui_internal.claim as claim where claim.thread_key = delete_thread.thread_key;
    delete from agui_internal.job_note as note where note.thread_key = delete_thread.thread_key;
    delete from agui.agent_error as kept where kept.thread_key = delete_thread.thread_key;
    delete from agui.hold as held where held.thread_key = delete_thread.thread_key;
    delete from agui.thread_activity as activity where activity.thread_key = delete_thread.thread_key;
    perform agui_internal.allow_log_change(true);
    delete from agui.run_input as given where given.thread_key = delete_thread.thread_key;
    delete from agui.input_part as part where part.thread_key = delete_thread.thread_key;
    delete from agui.batch as batch where batch.thread_key = delete_thread.thread_key;
    delete from agui.run as run where run.thread_key = delete_thread.thread_key;
    delete from agui.thread as thread where thread.thread_key = delete_thread.thread_key;
    perform agui_internal.allow_log_change(false);
end
$$;

comment on function agui_internal.delete_thread(uuid) is
    'Removes all rows of a thread but the requests of webhooks, and records nothing. The caller holds '
    'the lock of the thread.';

revoke execute on function agui_internal.delete_thread(uuid) from public;
