create or replace function agui_internal.delete_checkpoints(thread_key uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
    delete from agui.checkpoint_write as written where written.thread_key = delete_checkpoints.thread_key;
    delete from agui.channel_value as value where value.thread_key = delete_checkpoints.thread_key;
    delete from agui.channel_part as part where part.thread_key = delete_checkpoints.thread_key;
    delete from agui.channel as channel where channel.thread_key = delete_checkpoints.thread_key;
    delete from agui.checkpoint as checkpoint where checkpoint.thread_key = delete_checkpoints.thread_key;
$$;

comment on function agui_internal.delete_checkpoints(uuid) is
    'Deletes the checkpoints of a thread, with their values and writes. The caller holds a lock of the '
    'thread''s row.';

revoke execute on function agui_internal.delete_checkpoints(uuid) from public;
