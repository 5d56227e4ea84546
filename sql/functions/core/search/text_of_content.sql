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

comment on function agui_internal.text_of_content(json) is
    'The text of the content of a message (guarded JSON), a string or a list of parts, its first 100,000 '
    'characters; null: it has none.';

revoke execute on function agui_internal.text_of_content(json) from public;
