create or replace function agui_internal.title_of_message(message json)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    max_length constant int := 200;
    -- Removing white space may shorten the text: this is more than enough without reading all of a
    -- long text.
    looked_at  constant int := 10 * max_length;
    content    json := case
        when json_typeof(message) = 'string' then message
        when json_typeof(message) = 'object' and message ->> 'role' = 'user' then message -> 'content'
    end;
    title      text := case json_typeof(content)
        when 'string' then left(content #>> '{}', looked_at)
        when 'array' then (
            select string_agg(left(part.value ->> 'text', looked_at), ' ' order by part.position)
            from json_array_elements(content) with ordinality as part (value, position)
            where json_typeof(part.value) = 'object' and json_typeof(part.value -> 'text') = 'string'
        )
    end;
begin
    title := btrim(regexp_replace(agui_internal.readable(title), '\s+', ' ', 'g'));
    return nullif(rtrim(left(title, max_length)), '');
end
$$;

comment on function agui_internal.title_of_message(json) is
    'The title that a message (guarded JSON) gives its thread: the first 200 characters of the '
    'text of the user, on one line. Null if it is not a user message or has no text.';

revoke execute on function agui_internal.title_of_message(json) from public;
