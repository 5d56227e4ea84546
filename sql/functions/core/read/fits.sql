create or replace function agui_internal.fits(document json, max_bytes bigint)
returns boolean
language sql
stable
parallel safe
-- Decompressing a value takes as long as reading it, so only values that may be too large are
-- decompressed. The best possible ratio is that of lz4, 255 bytes for one.
return 255 * pg_column_size(document)::bigint <= max_bytes or agui_internal.text_bytes(document) <= max_bytes;

comment on function agui_internal.fits(json, bigint) is
    'Whether the text of a stored JSON value has at most max_bytes bytes.';

revoke execute on function agui_internal.fits(json, bigint) from public;
