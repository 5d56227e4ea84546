-- PostgreSQL's JSON functions refuse two things that JSON allows in a string: the escape \u0000 and half of a surrogate pair
-- (a token stream that was cut in the middle of an emoji). In guarded text these escapes are plain characters: the parser
-- sees an escaped backslash and then uXXXX. So that nothing else looks like that, an escaped backslash is written in the same way:
--
--     \u0000  ->  \\u0000          \ud83d (without its other half)  ->  \\ud83d          \\ or \u005C  ->  \\u005c
--
-- In a string decoded from guarded text a backslash therefore only ever begins such a group of six characters, in lower case.
-- Two strings are equal when their guarded forms are, jsonb holds every guarded string, and agui_internal.json_unguard turns whatever was
-- built from guarded text back into JSON. Halves that meet when strings are joined are a whole character again after that.
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
    'JSON text rewritten so that PostgreSQL''s JSON functions and jsonb accept every string in it: \u0000, lone surrogates and '
    'backslashes become plain text. agui_internal.json_unguard puts them back.';

revoke execute on function agui_internal.json_guard(text) from public;
