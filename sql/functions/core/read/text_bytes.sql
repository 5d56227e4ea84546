create or replace function agui_internal.text_bytes(document json)
returns int
language sql
stable
parallel safe
-- A value that is not compressed is as large as it is stored.
return case
    when pg_column_compression(document) is null then pg_column_size(document)
    else octet_length(document::text)
end;

comment on function agui_internal.text_bytes(json) is
    'The bytes of the text of a stored JSON value, which is opened only if it is compressed; null '
    'for null.';

revoke execute on function agui_internal.text_bytes(json) from public;
