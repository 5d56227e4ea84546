-- The JSON functions of PostgreSQL refuse two things that JSON allows in a string: the escape \u0000
-- and half of a surrogate pair (a token stream that was cut in the middle of an emoji). In guarded
-- text these escapes are plain characters: the parser sees an escaped backslash and then uXXXX. To
-- keep this unambiguous, an escaped backslash is written in the same way:
--
--     \u0000                             ->  \\u0000
--     \ud83d (without its other half)    ->  \\ud83d
--     \\ or \u005C                       ->  \\u005c
--
-- So in a string decoded from guarded text, a backslash only ever begins such a group of six
-- characters, in lower case. Two strings are equal if and only if their guarded forms are. jsonb
-- can hold every guarded string, and agui_internal.json_unguard converts anything built from guarded
-- text back to JSON. Halves that meet when strings are joined then form a whole character.
create or replace function agui_internal.json_guard(document text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(document, '\') = 0 then document
    when document like '%\\\\%' or document like '%\\u%' then agui_internal.json_guard_escapes(document)
    else document
end;

comment on function agui_internal.json_guard(text) is
    'Rewrites JSON text so that the JSON functions of PostgreSQL and jsonb accept every string in it: '
    '\u0000, lone surrogates and backslashes become plain text. agui_internal.json_unguard reverts it.';

revoke execute on function agui_internal.json_guard(text) from public;
