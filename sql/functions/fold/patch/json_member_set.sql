-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_member_set(document text, name text, value text)
returns text
language plpgsql
immutable
parallel safe
as $function$
begin
    return (
        select pg_catalog.concat(
            '{',
            pg_catalog.string_agg(pg_catalog.concat(pg_catalog.to_json(member.key), ':', member.value), ',' order by member.position),
            '}'
        )
        from (
            -- The last value of a key counts, at the place of its first one.
            select each.key, (pg_catalog.array_agg(each.value order by each.position desc))[1] as value, pg_catalog.min(each.position) as position
            from (
                select each.key, each.value::pg_catalog.text, each.position
                from pg_catalog.json_each(document::pg_catalog.json) with ordinality as each (key, value, position)
                union all
                select json_member_set.name, json_member_set.value, 9223372036854775807
            ) as each (key, value, position)
            group by each.key
        ) as member
        where member.value is not null
    );
end
$function$;

comment on function agui_internal.json_member_set(text, text, text) is
    'A JSON object (as guarded text) with a member set to a value, in its place or else at the end; without the member when the value is null.';

revoke execute on function agui_internal.json_member_set(text, text, text) from public;
