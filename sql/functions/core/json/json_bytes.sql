-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_bytes(document json)
returns bytea
language sql
stable
parallel safe
return case
    when pg_client_encoding() = getdatabaseencoding() then json_send(document)
    else convert_to(document::text, getdatabaseencoding())
end;

comment on function agui_internal.json_bytes(json) is
    'The text of a JSON value as bytes, to search in. A cast to text makes a second copy, which counts where values are large.';

revoke execute on function agui_internal.json_bytes(json) from public;
