create or replace function agui_internal.json_take_apart(
    in value jsonb,
    in last_node int,
    out pieces jsonb[],
    out members jsonb,
    out items agui_internal.json_nodes
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if jsonb_typeof(value) = 'object' then
        select
            coalesce(array_agg(member.value), '{}'),
            jsonb_object(
                coalesce(array_agg(member.key), '{}'),
                coalesce(array_agg((last_node + member.position)::text), '{}')
            )
        into pieces, members
        from jsonb_each(json_take_apart.value) with ordinality as member (key, value, position);
    else
        pieces := array(select jsonb_array_elements(value));
        items := array(select generate_series(last_node + 1, last_node + cardinality(pieces)));
    end if;
end
$function$;

comment on function agui_internal.json_take_apart(jsonb, int) is
    'The values in an object or array, to become nodes of agui_internal.json_patch_apply after '
    'last_node, and the node of each: of the members of an object by name, or of the items of an '
    'array in order.';

revoke execute on function agui_internal.json_take_apart(jsonb, int) from public;
