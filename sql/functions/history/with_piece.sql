create or replace function agui.with_piece(event json, in_content boolean, piece text)
returns json
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select agui.json_unguard(
        '{' || string_agg(
            to_json(member.key)::text || ':' || case
                when member.key = case when in_content then 'content' else 'delta' end then '"' || piece || '"'
                else member.value::text
            end,
            ','
            order by member.position
        ) || '}'
    )::json
    from json_each(agui.json_guarded(event)) with ordinality as member (key, value, position)
$$;

comment on function agui.with_piece(json, boolean, text) is
    'An event with another delta (or, where its text is in content, content): the inside of a string of guarded JSON text.';

revoke execute on function agui.with_piece(json, boolean, text) from public;
