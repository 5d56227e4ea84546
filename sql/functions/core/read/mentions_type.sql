-- It is inlined.
create or replace function agui_internal.mentions_type(text text, beginning text)
returns boolean
language sql
immutable
parallel safe
-- Types are capital letters and underscores: with escapes \u0041 to \u005f.
return strpos(text, beginning) > 0 or strpos(text, '\u00') > 0 and text ~ '\\u00[45]';

comment on function agui_internal.mentions_type(text, text) is
    'Whether JSON text may contain an event of a type that begins so. False: it contains none.';

revoke execute on function agui_internal.mentions_type(text, text) from public;
