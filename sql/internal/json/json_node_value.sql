-- The arrays are not copied on the way here: PL/pgSQL hands them on as they are, and so do queries with a generic plan, which
-- agui_internal.json_patch_apply asks for.
create or replace function agui_internal.json_node_value(
    node int,
    pieces jsonb[],
    opened int[],
    members jsonb[],
    added jsonb[],
    items agui_internal.json_nodes[]
)
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if opened[node] is null then
        return pieces[node];
    elsif members[opened[node]] is not null then
        return (
            select coalesce(jsonb_object_agg(member.name, member.value), '{}')
            from (
                select
                    child.name,
                    coalesce(
                        pieces[child.node::int],
                        agui_internal.json_node_value(child.node::int, pieces, opened, members, added, items)
                    ) as value
                from jsonb_each_text(
                    members[opened[json_node_value.node]] || coalesce(added[opened[json_node_value.node]], '{}')
                ) as child (name, node)
                offset 0
            ) as member
            where member.value is not null
        );
    else
        return (
            select coalesce(
                jsonb_agg(
                    coalesce(pieces[item.node], agui_internal.json_node_value(item.node, pieces, opened, members, added, items))
                    order by item.position
                ),
                '[]'
            )
            from unnest(items[opened[json_node_value.node]]) with ordinality as item (node, position)
        );
    end if;
end
$function$;

comment on function agui_internal.json_node_value(int, jsonb[], int[], jsonb[], jsonb[], agui_internal.json_nodes[]) is
    'The value of a node of agui_internal.json_patch_apply, put together again.';

revoke execute on function agui_internal.json_node_value(int, jsonb[], int[], jsonb[], jsonb[], agui_internal.json_nodes[]) from public;
