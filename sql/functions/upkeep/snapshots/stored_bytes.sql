create or replace function agui_internal.stored_bytes(events json, earlier_us int[])
returns bigint
language sql
stable
parallel safe
-- The stored, compressed columns and the overhead of the row.
return pg_column_size(events) + coalesce(pg_column_size(earlier_us), 0) + 70;

comment on function agui_internal.stored_bytes(json, int[]) is
    'The stored size of a batch in bytes, given its columns as stored.';

revoke execute on function agui_internal.stored_bytes(json, int[]) from public;
