create or replace function agui_internal.compact_metadata(objects text[])
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select case
        when cardinality(objects) > 1 is not true then objects[1]
        else (
            select '{' || coalesce(string_agg(to_json(member.key)::text || ':' || member.value, ',' order by member.position), '') || '}'
            from (
                select
                    each.key,
                    (array_agg(each.value::text order by object.position desc, each.position desc))[1] as value,
                    min(array[object.position, each.position]) as position
                from unnest(objects) with ordinality as object (text, position)
                cross join lateral json_each(object.text::json) with ordinality as each (key, value, position)
                group by each.key
            ) as member
        )
    end
$function$;

comment on function agui_internal.compact_metadata(text[]) is
    'Merges objects (guarded JSON) key by key; the last write wins. Null if there is none.';

revoke execute on function agui_internal.compact_metadata(text[]) from public;
