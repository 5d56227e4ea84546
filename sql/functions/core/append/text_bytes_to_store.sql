create or replace function agui_internal.text_bytes_to_store(events json)
returns int
language sql
stable
parallel safe
return case
    -- Arguments are usually not compressed. A value read from a table may be.
    when pg_column_compression(events) is not null then octet_length(events::text)
    when pg_column_size(events) > 2000 then pg_column_size(events)
end;

comment on function agui_internal.text_bytes_to_store(json) is
    'The value of batch.text_bytes for a new batch: slightly more than the bytes of its text, or '
    'null if the batch is too small to be compressed.';

revoke execute on function agui_internal.text_bytes_to_store(json) from public;
