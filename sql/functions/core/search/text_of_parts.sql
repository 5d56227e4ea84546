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

comment on function agui_internal.text_of_parts(json) is
    'The texts of the parts of a content (guarded JSON), a line end between two; null: it has none.';

revoke execute on function agui_internal.text_of_parts(json) from public;
