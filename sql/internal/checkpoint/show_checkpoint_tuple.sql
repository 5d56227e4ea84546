create or replace function agui_internal.show_checkpoint_tuple(checkpoint agui.checkpoint, thread_id text)
returns agui.checkpoint_tuple
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        coalesce(show_checkpoint_tuple.thread_id, (select thread.thread_id from agui.thread as thread where thread.thread_key = checkpoint.thread_key)),
        checkpoint.namespace,
        checkpoint.checkpoint_id,
        agui_internal.parent_id_of(checkpoint),
        checkpoint.run_id,
        checkpoint.saved_at,
        checkpoint.document,
        checkpoint.metadata,
        agui_internal.values_of_checkpoint(checkpoint),
        agui_internal.writes_of_checkpoint(checkpoint),
        agui_internal.checkpoint_cursor(checkpoint)
$$;

comment on function agui_internal.show_checkpoint_tuple(agui.checkpoint, text) is
    'Converts a checkpoint to the row that users see, with its values and writes. thread_id: the id of '
    'its thread, if the caller knows it.';

revoke execute on function agui_internal.show_checkpoint_tuple(agui.checkpoint, text) from public;
