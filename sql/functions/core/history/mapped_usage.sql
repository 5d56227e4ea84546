create or replace function agui_internal.mapped_usage(event json)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    mapping agui_internal.usage_mapping;
    given   json;
begin
    select * into mapping from agui_internal.usage_mapping;
    if not found then
        return null;
    end if;
    given := event #> mapping.path;
    return (
        select json_agg(renamed.entry order by item.position)
        from json_array_elements(case json_typeof(given) when 'array' then given when 'object' then json_build_array(given) end)
            with ordinality as item (value, position)
        cross join lateral (
            select json_object_agg(known.name, item.value #> string_to_array(coalesce(mapping.names ->> known.name, known.name), '.')) as entry
            from unnest(agui_internal.usage_members()) as known (name)
            where json_typeof(item.value) = 'object'
        ) as renamed
        where renamed.entry is not null
    );
end
$$;

comment on function agui_internal.mapped_usage(json) is
    'The usage that an end of a run (guarded JSON) reports where agui.map_usage says, as AG-UI writes it; '
    'null: nothing there, or there is no mapping.';

revoke execute on function agui_internal.mapped_usage(json) from public;
