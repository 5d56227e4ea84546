-- json_each returns members byte for byte, but fails if a string contains \u0000 or a lone surrogate.
-- So it gets the text with escapes that it does not interpret and that can be reverted exactly
-- (agui_internal.json_guard would unify different spellings of a string):
--
--     \uXXXX  ->  \\uXXXX
--     \\      ->  \\x
--
-- In JSON a backslash always begins an escape, so pairs of them are found from the left. \x is not
-- an escape of JSON, so it can represent such a pair.
create or replace function agui_internal.json_members(document json)
returns table (name text, value json)
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    opaque constant json := replace(replace(replace(document::text, '\\', '\x'), '\u', '\\u'), '\x', '\\x');
begin
    return query
    select member.name, replace(replace(member.value::text, '\\u', '\u'), '\\x', '\\')::json
    from (
        select named.name, named.value, named.place,
            row_number() over (partition by named.name order by named.place desc) as nth_last
        from (
            select agui_internal.json_text(replace(replace(to_json(each.key)::text, '\\u', '\u'), '\\x', '\\')) as name, each.value, each.place
            from json_each(opaque) with ordinality as each (key, value, place)
        ) as named
    ) as member
    where member.nth_last = 1
    order by member.place;
end
$$;

comment on function agui_internal.json_members(json) is
    'The members of a JSON object in order, with values byte for byte, whatever strings they hold. Of a name that stands several times the last one counts. '
    'Null stands for a name that text cannot hold: one with \u0000 or half a surrogate pair.';

revoke execute on function agui_internal.json_members(json) from public;
