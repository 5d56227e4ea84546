create or replace function agui_internal.stored_bytes(events json, earlier_us int[])
returns bigint
language sql
stable
parallel safe
-- The columns as they are stored, compressed, and what the row takes beside them.
return pg_column_size(events) + coalesce(pg_column_size(earlier_us), 0) + 70;

comment on function agui_internal.stored_bytes(json, int[]) is
    'Bytes that a batch takes as stored, given its columns as they come from the table.';

revoke execute on function agui_internal.stored_bytes(json, int[]) from public;
