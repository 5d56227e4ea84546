-- Without recursion: PL/pgSQL takes kilobytes of the stack for each level, and a document may be
-- 1,000 levels deep.
-- The arrays are not copied on the way here: PL/pgSQL passes them by reference, and so do queries
-- with a generic plan, which agui_internal.json_patch_apply requires.
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
set plan_cache_mode = force_generic_plan
as $function$
declare
    owners   int[] := array[opened[node]]; -- the opened nodes, each before those in it
    position int := 1;
    owner    int;
    child    int;
    made     jsonb[] := '{}';              -- the value of each owner
    value    jsonb;
begin
    if opened[node] is null then
        return pieces[node];
    end if;

    -- If only the root is opened, there is nothing to search.
    while cardinality(opened) > 1 and position <= cardinality(owners) loop
        owner := owners[position];
        if members[owner] is not null then
            for child in
                select opened[named.node::int]
                from jsonb_each_text(members[owner] || coalesce(added[owner], '{}')) as named (name, node)
                where opened[named.node::int] is not null
            loop
                owners := array_append(owners, child);
            end loop;
        else
            for child in
                select opened[item.node]
                from unnest(items[owner]) as item (node)
                where opened[item.node] is not null
            loop
                owners := array_append(owners, child);
            end loop;
        end if;
        position := position + 1;
    end loop;

    for position in reverse cardinality(owners) .. 1 loop
        owner := owners[position];
        if members[owner] is not null then
            value := (
                select coalesce(jsonb_object_agg(member.name, member.value), '{}')
                from (
                    select named.name, coalesce(pieces[named.node::int], made[opened[named.node::int]]) as value
                    from jsonb_each_text(members[owner] || coalesce(added[owner], '{}')) as named (name, node)
                    offset 0
                ) as member
                where member.value is not null
            );
        else
            -- jsonb_agg would copy each number in them separately.
            value := to_jsonb(array(
                select coalesce(pieces[item.node], made[opened[item.node]])
                from unnest(items[owner]) with ordinality as item (node, position)
                order by item.position
            ));
        end if;
        -- Large values are not copied more often than necessary.
        if position > 1 then
            made[owner] := value;
        end if;
    end loop;
    return value;
end
$function$;

comment on function agui_internal.json_node_value(int, jsonb[], int[], jsonb[], jsonb[], agui_internal.json_nodes[]) is
    'The value of a node of agui_internal.json_patch_apply, put back together.';

revoke execute on function agui_internal.json_node_value(int, jsonb[], int[], jsonb[], jsonb[], agui_internal.json_nodes[]) from public;
