create or replace function agui_internal.checkpoint_cursor(checkpoint agui.checkpoint)
returns text
language sql
immutable
parallel safe
return replace(checkpoint.thread_key::text, '-', '') || lpad(to_hex(checkpoint.checkpoint_no), 16, '0') || checkpoint.checkpoint_id;

comment on function agui_internal.checkpoint_cursor(agui.checkpoint) is
    'The place of a checkpoint in the list of agui.checkpoint_contents: key and number in 48 digits, '
    'then the id.';

revoke execute on function agui_internal.checkpoint_cursor(agui.checkpoint) from public;
