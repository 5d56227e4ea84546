create or replace function agui_internal.show_checkpoint(checkpoint agui.checkpoint)
returns agui.checkpoint_row
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        checkpoint.checkpoint_no,
        checkpoint.namespace,
        checkpoint.checkpoint_id,
        (
            select parent.checkpoint_id
            from agui.checkpoint as parent
            where parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
        ),
        checkpoint.run_id,
        checkpoint.saved_at,
        checkpoint.document
$$;

comment on function agui_internal.show_checkpoint(agui.checkpoint) is
    'Converts a checkpoint to the row that users see, with the id of its parent.';

revoke execute on function agui_internal.show_checkpoint(agui.checkpoint) from public;
