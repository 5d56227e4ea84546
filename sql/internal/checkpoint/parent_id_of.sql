create or replace function agui_internal.parent_id_of(checkpoint agui.checkpoint)
returns text
language sql
stable
parallel safe
return (
    select parent.checkpoint_id
    from agui.checkpoint as parent
    where parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
);

comment on function agui_internal.parent_id_of(agui.checkpoint) is
    'The id of the checkpoint that this one continues from; null: none.';

revoke execute on function agui_internal.parent_id_of(agui.checkpoint) from public;
