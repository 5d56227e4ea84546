-- Not strict and without a query, so that it is inlined. Calls of replace are several times faster than
-- one of translate.
create or replace function agui_internal.base64_text(value text)
returns text
language sql
immutable
parallel safe
return rtrim(
    replace(replace(replace(replace(replace(replace(value, ' ', ''), E'\t', ''), E'\r', ''), E'\n', ''), '-', '+'), '_', '/'),
    '='
);

comment on function agui_internal.base64_text(text) is
    'Base64 in one spelling: without white space, with the letters + and /, without = at its end.';

revoke execute on function agui_internal.base64_text(text) from public;
