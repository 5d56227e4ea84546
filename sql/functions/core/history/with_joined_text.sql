create or replace function agui_internal.with_joined_text(event json, in_content boolean, piece text)
returns json
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.json_unguard(
        '{' || string_agg(
            to_json(member.key)::text || ':' || case
                when member.key = case when in_content then 'content' else 'delta' end then '"' || piece || '"'
                else member.value::text
            end,
            ','
            order by member.position
        ) || '}'
    )::json
    from json_each(agui_internal.json_guarded(event)) with ordinality as member (key, value, position)
$$;

comment on function agui_internal.with_joined_text(json, boolean, text) is
    'An event with another delta (or, if in_content, another content): the inside of a string of '
    'guarded JSON text.';

revoke execute on function agui_internal.with_joined_text(json, boolean, text) from public;
