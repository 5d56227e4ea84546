create or replace function agui_internal.json_unguard(document text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(document, '\u') = 0 then document
    else replace(replace(document, '\\u', '\u'), '\u005c', '\\')
end;

comment on function agui_internal.json_unguard(text) is
    'JSON text from text that agui_internal.json_guard rewrote, or that was put together from such text.';

revoke execute on function agui_internal.json_unguard(text) from public;
