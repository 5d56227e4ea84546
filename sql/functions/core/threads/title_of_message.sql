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
    if coalesce(title, '') = '' and json_typeof(content) = 'array' then
        -- Files without a word: their names, or what they are.
        select string_agg(coalesce(nullif(btrim(regexp_replace(agui_internal.readable(left(file.name, looked_at)), '\s+', ' ', 'g')), ''), '(' || file.kind || ')'),
            ', ' order by file.position)
        into title
        from (
            select
                part.position,
                coalesce(part.value ->> 'filename', part.value -> 'metadata' ->> 'filename') as name,
                case
                    when part.value ->> 'type' in ('image', 'audio', 'video', 'document') then part.value ->> 'type'
                    when part.value ->> 'type' is distinct from 'binary' then null
                    when part.value ->> 'mimeType' ~ '^(image|audio|video)/' then split_part(part.value ->> 'mimeType', '/', 1)
                    else 'document'
                end as kind
            from json_array_elements(content) with ordinality as part (value, position)
            where json_typeof(part.value) = 'object'
        ) as file
        where file.kind is not null;
    end if;
    return nullif(rtrim(left(title, max_length)), '');
end
$$;

comment on function agui_internal.title_of_message(json) is
    'The title that a message (guarded JSON) gives its thread: the first 200 characters of the '
    'text of the user, on one line; of a message that has only files, their names or kinds. Null if it '
    'is not a user message or has neither.';

revoke execute on function agui_internal.title_of_message(json) from public;
