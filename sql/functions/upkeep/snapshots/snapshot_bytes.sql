create or replace function agui_internal.snapshot_bytes(document_bytes bigint, new_messages bigint, message_bytes bigint)
returns bigint
language sql
immutable
parallel safe
-- Includes the overhead of the rows.
return 100 + document_bytes + 60 * new_messages + message_bytes;

comment on function agui_internal.snapshot_bytes(bigint, bigint, bigint) is
    'The size of a snapshot in bytes, given the bytes of its state and interrupts and the number '
    'and bytes of the message versions that it adds.';

revoke execute on function agui_internal.snapshot_bytes(bigint, bigint, bigint) from public;
