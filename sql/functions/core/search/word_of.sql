create or replace function agui_internal.word_of(kind text, value text)
returns text
language sql
immutable
strict
parallel safe
-- No parser of text makes a word with this character.
return chr(1) || kind || ':' || value;

comment on function agui_internal.word_of(text, text) is
    'A word of agui.message_text.words that stands for a property of the row: kind is scope (value: '
    'agui_internal.scope_key) or role.';

revoke execute on function agui_internal.word_of(text, text) from public;
