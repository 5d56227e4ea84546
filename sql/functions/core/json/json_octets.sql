-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_octets(document json)
returns int
language sql
stable
parallel safe
return case
    -- Arguments are usually not compressed. A value read from a table may be.
    when pg_column_compression(document) is not null then octet_length(document::text)
    when pg_column_size(document) > 1000 then pg_column_size(document) - 4
    else octet_length(document::text)
end;

comment on function agui_internal.json_octets(json) is
    'The bytes of a JSON value, without a copy of its text.';

revoke execute on function agui_internal.json_octets(json) from public;
