-- It is inlined.
create or replace function agui_internal.brings_messages(text text)
returns boolean
language sql
immutable
parallel safe
return strpos(text, '_START') > 0
    or strpos(text, '_CHUNK') > 0
    or strpos(text, '_RESULT') > 0
    or strpos(text, '_SNAPSHOT') > 0
    or strpos(text, '"ACTIVITY"') > 0
    or strpos(text, '\u00') > 0 and text ~ '\\u00[45]';

comment on function agui_internal.brings_messages(text) is
    'Whether JSON text may contain an event that brings a message or a tool call. False: it contains none.';

revoke execute on function agui_internal.brings_messages(text) from public;
