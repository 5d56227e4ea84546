create or replace function agui_internal.chain_text(value text)
returns bytea
language sql
stable
parallel safe
return int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8');

comment on function agui_internal.chain_text(text) is
    'A text as a link of the chain covers it: the number of its bytes in UTF-8 (4 bytes, '
    'big-endian), then the bytes.';

revoke execute on function agui_internal.chain_text(text) from public;
