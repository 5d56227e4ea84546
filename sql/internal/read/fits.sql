create or replace function agui_internal.fits(document json, max_bytes bigint)
returns boolean
language sql
stable
parallel safe
-- To open it takes as long as to read it: that is left to what may be too large. The formats cannot do better than lz4, 255 octets for one.
return 255 * pg_column_size(document)::bigint <= max_bytes or agui_internal.text_bytes(document) <= max_bytes;

comment on function agui_internal.fits(json, bigint) is 'Whether the text of a stored JSON value has max_bytes octets or fewer.';

revoke execute on function agui_internal.fits(json, bigint) from public;
