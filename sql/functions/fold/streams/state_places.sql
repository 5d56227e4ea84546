create or replace function agui_internal.state_places(within text, document json, max_bytes int)
returns table (path text, value text)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    kind   constant text := json_typeof(document);
    member record;
begin
    for member in
        select within || '/' || replace(replace(field.key, '~', '~0'), '/', '~1') as path, field.value
        from json_each(case when kind = 'object' then document end) as field
        union all
        select within || '/' || element.position - 1, element.value
        from json_array_elements(case when kind = 'array' then document end) with ordinality as element (value, position)
    loop
        path := member.path;
        if octet_length(member.value::text) + octet_length(member.path) <= max_bytes
            or json_typeof(member.value) not in ('object', 'array')
        then
            value := member.value::text;
            return next;
        else
            value := case json_typeof(member.value) when 'object' then '{}' else '[]' end;
            return next;
            return query select place.path, place.value from agui_internal.state_places(member.path, member.value, max_bytes) as place;
        end if;
    end loop;
end
$$;

comment on function agui_internal.state_places(text, json, int) is
    'The places of a document (guarded JSON, an object or a list at the path within) to fill in turn: its members, and in place of a '
    'member that has more than max_bytes an empty one and its own members. path: a JSON pointer.';

revoke execute on function agui_internal.state_places(text, json, int) from public;
