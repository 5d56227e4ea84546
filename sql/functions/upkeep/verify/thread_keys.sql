create or replace function agui_internal.thread_keys(thread_id text, scope text default '')
returns setof uuid
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select derived.thread_key
    from (values (agui_internal.visible_thread_key(thread_keys.scope, thread_keys.thread_id))) as derived (thread_key)
    where exists (select from agui.thread where thread.thread_key = derived.thread_key)
        or exists (select from agui.run where run.thread_key = derived.thread_key)
        or exists (select from agui.batch where batch.thread_key = derived.thread_key)
        or exists (select from agui.snapshot where snapshot.thread_key = derived.thread_key)
        or exists (select from agui.message_version as message where message.thread_key = derived.thread_key)
        or exists (select from agui.session_key where session_key.thread_key = derived.thread_key)
        or exists (select from agui.session_state where session_state.thread_key = derived.thread_key)
        or exists (select from agui.checkpoint where checkpoint.thread_key = derived.thread_key)
        or exists (select from agui.channel where channel.thread_key = derived.thread_key)
        or exists (select from agui.thread_activity where thread_activity.thread_key = derived.thread_key)
    union
    select thread.thread_key
    from agui.thread as thread
    where thread.thread_id = thread_keys.thread_id
        and thread.scope = thread_keys.scope
        and agui_internal.visible_thread_key(thread_keys.scope, '') is not null
$$;

comment on function agui_internal.thread_keys(text, text) is
    'The key of a thread, if there is a row with it, and the key of a thread row whose key is '
    'wrong, which is damage.';

revoke execute on function agui_internal.thread_keys(text, text) from public;
