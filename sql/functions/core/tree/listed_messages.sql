create or replace function agui_internal.listed_messages(messages json, wanted jsonb)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(distinct entry.id)
    from (
        select agui_internal.json_string_text(case when json_typeof(listed.message) = 'object' then (listed.message -> 'id')::text end) as id
        from json_array_elements(case when json_typeof(messages) = 'array' then messages end) as listed (message)
    ) as entry
    where wanted ? entry.id
$$;

comment on function agui_internal.listed_messages(json, jsonb) is
    'Which of the wanted ids, the keys of an object, the messages of a list in guarded JSON have, as '
    'the fold decodes them. Null: none.';

revoke execute on function agui_internal.listed_messages(json, jsonb) from public;
