create or replace function agui_internal.text_of_content(content json)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    most_characters constant int := 100000;
    text text := case json_typeof(content)
        when 'string' then agui_internal.json_string_text(content::text)
        when 'array' then (
            select string_agg(agui_internal.json_string_text((part.value -> 'text')::text), e'\n' order by part.position)
            from json_array_elements(content) with ordinality as part (value, position)
            where json_typeof(part.value) = 'object'
        )
    end;
begin
    return nullif(left(agui_internal.readable(text), most_characters), '');
end
$$;

comment on function agui_internal.text_of_content(json) is
    'The text of the content of a message (guarded JSON), a string or a list of parts; null: it has none.';

revoke execute on function agui_internal.text_of_content(json) from public;
