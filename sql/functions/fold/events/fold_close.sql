-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_close(head text, content text, metadata text, calls text)
returns text
language sql
immutable
parallel safe
return replace(
    replace(replace(head, '"\\calls"', coalesce(calls, '')), '"\\metadata"', coalesce(metadata, '')),
    '"\\content"',
    coalesce(content, '')
);

comment on function agui_internal.fold_close(text, text, text, text) is
    'Puts the parts back together that agui_internal.fold_open took apart (guarded JSON text).';

revoke execute on function agui_internal.fold_close(text, text, text, text) from public;
