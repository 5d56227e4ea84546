create or replace function agui.stored_bytes(events json)
returns bigint
language sql
stable
parallel safe
-- The column as it is stored, compressed, and what its row takes beside it.
return pg_column_size(events) + 70;

comment on function agui.stored_bytes(json) is
    'Bytes that a batch takes as stored, given its events column as it comes from the table.';

revoke execute on function agui.stored_bytes(json) from public;
