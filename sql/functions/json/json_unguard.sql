create or replace function agui.json_unguard(document text)
returns text
language sql
immutable
parallel safe
return replace(document, '\\u', '\u');

comment on function agui.json_unguard(text) is
    'JSON text from text that agui.json_guard rewrote, or that was put together from such text.';

revoke execute on function agui.json_unguard(text) from public;
