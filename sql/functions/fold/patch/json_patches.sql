create or replace function agui_internal.json_patches(patches text[], document_bytes bigint)
returns jsonb[]
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    -- While PostgreSQL makes jsonb, it takes many times the bytes of the text.
    bytes_of_group constant int := 1024 * 1024;
    -- Small documents can be patched too.
    most_elements constant bigint := greatest(document_bytes, 16 * 1024 * 1024);
begin
    return array(
        select element.patch
        from (
            select groups.group_no, '[' || string_agg(groups.patch, ',' order by groups.position) || ']' as joined
            from (
                select
                    case when agui_internal.json_has_too_many_elements(each.patch, most_elements) then 'null' else each.patch end as patch,
                    each.position,
                    sum(octet_length(each.patch)) over (order by each.position) / bytes_of_group as group_no
                from unnest(patches) with ordinality as each (patch, position)
            ) as groups
            group by groups.group_no
        ) as groups
        cross join lateral jsonb_array_elements(agui_internal.json_guard_numbers(groups.joined)::jsonb) with ordinality as element (patch, position)
        order by groups.group_no, element.position
    );
end
$function$;

comment on function agui_internal.json_patches(text[], bigint) is
    'Patches (guarded JSON texts) as agui_internal.json_patch_apply expects them; null for one whose elements alone exceed the limit '
    'document_bytes, and 16 MB. Converted in groups, because one at a time takes several times as long, and all at once much memory.';

revoke execute on function agui_internal.json_patches(text[], bigint) from public;
