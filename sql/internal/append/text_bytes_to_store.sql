create or replace function agui_internal.text_bytes_to_store(events json)
returns int
language sql
stable
parallel safe
return case
    -- As a rule they come as they are. From a table they may come compressed.
    when pg_column_compression(events) is not null then octet_length(events::text)
    when pg_column_size(events) > 2000 then pg_column_size(events)
end;

comment on function agui_internal.text_bytes_to_store(json) is
    'batch.text_bytes of a batch that is to be stored: with some octets more than its text has, or null where it is too small to be compressed.';

revoke execute on function agui_internal.text_bytes_to_store(json) from public;
