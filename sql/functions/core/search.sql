-- Inlined, so that pinning the search path for each message takes no time.
create or replace function agui_internal.text_of_content(content json)
returns text
language sql
immutable
parallel safe
return nullif(left(agui_internal.readable(
    case json_typeof(content)
        when 'string' then agui_internal.json_string_text(content::text)
        when 'array' then agui_internal.text_of_parts(content)
    end
), 100000), '');

comment on function agui_internal.text_of_content is
    'The text of the content of a message (guarded JSON), a string or a list of parts, its first 100,000 '
    'characters; null: it has none.';

create or replace function agui_internal.text_of_parts(content json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select string_agg(agui_internal.json_string_text((part.value -> 'text')::text), e'\n' order by part.position)
        from json_array_elements(content) with ordinality as part (value, position)
        where json_typeof(part.value) = 'object'
    );
end
$$;

comment on function agui_internal.text_of_parts is
    'The texts of the parts of a content (guarded JSON), a line end between two; null: it has none.';

create or replace function agui_internal.word_of(kind text, value text)
returns text
language sql
immutable
strict
parallel safe
-- No parser of text makes a word with this character.
return chr(1) || kind || ':' || value;

comment on function agui_internal.word_of is
    'A word of agui.message_text.words that stands for a property of the row: kind is scope (value: '
    'agui_internal.scope_key) or role.';
