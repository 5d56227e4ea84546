-- The exact length takes opening the value, which a page of many small ones does not pay for.
create or replace function agui_internal.most_bytes(document json, exact_from int default 4096)
returns bigint
language sql
stable
parallel safe
return case
    when pg_column_compression(document) is null then pg_column_size(document)
    when pg_column_size(document) >= exact_from then octet_length(document::text)
    -- The formats cannot do better: lz4 255 octets for one, pglz 88.
    else 255 * pg_column_size(document)
end;

comment on function agui_internal.most_bytes(json, int) is
    'A bound of the octets that the text of a stored JSON value has: exact where it is not compressed or takes exact_from '
    'bytes or more as stored; null for null.';

revoke execute on function agui_internal.most_bytes(json, int) from public;
