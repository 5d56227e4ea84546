-- What it costs in SQL to keep the order of members while patches are applied, beside what jsonb costs: each member gets its number, and
-- is printed in that order. docs/decisions.md says why. Run: psql -f bench/order.sql, in any database.

create function pg_temp.numbered(value json) returns jsonb language plpgsql as $$
begin
    if json_typeof(value) = 'object' then
        return (
            select jsonb_object_agg(member.key, jsonb_build_array(member.place, pg_temp.numbered(member.value)))
            from json_each(value) with ordinality as member (key, value, place)
        );
    elsif json_typeof(value) = 'array' then
        return (
            select jsonb_agg(pg_temp.numbered(item.value) order by item.place)
            from json_array_elements(value) with ordinality as item (value, place)
        );
    end if;
    return value;
end $$;

create function pg_temp.printed(value jsonb) returns text language plpgsql as $$
begin
    if jsonb_typeof(value) = 'object' then
        return (
            select '{' || string_agg(to_jsonb(member.key)::text || ': ' || pg_temp.printed(member.value -> 1), ', ' order by (member.value -> 0)::int) || '}'
            from jsonb_each(value) as member
        );
    elsif jsonb_typeof(value) = 'array' then
        return (
            select '[' || string_agg(pg_temp.printed(item.value), ', ' order by item.place) || ']'
            from jsonb_array_elements(value) with ordinality as item (value, place)
        );
    end if;
    return value;
end $$;

-- The document of make bench ARGS=patch, as text and in another order than that of jsonb.
create temporary table large as
select
    (
        select json_object_agg('section' || section, items)
        from generate_series(1, 27) as section, lateral (
            select json_object_agg('item' || n, json_build_object('title', repeat('x', 60), 'status', 'open', 'id', section * 1000 + n)) as items
            from generate_series(1, 30) as n
        ) as list
    )::text as document;

\timing on
\echo as jsonb, three times
select octet_length(document::jsonb::text) from large \g /dev/null
\g /dev/null
\g /dev/null
\echo in the order of members, three times
select octet_length(pg_temp.printed(pg_temp.numbered(document::json))) from large \g /dev/null
\g /dev/null
\g /dev/null
