create or replace function agui_internal.preorder(parents int[])
returns table (node int, depth int, place int)
language plpgsql
immutable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    n constant int := coalesce(cardinality(parents), 0);
    sizes      int[] := array_fill(1, array[n]);  -- of the subtrees
    depths     int[] := array_fill(1, array[n]);
    next_place int[] := array_fill(0, array[n]);  -- of the next child of a node
    next_root  int := 1;
    parent     int;
begin
    for node_no in reverse n..1 loop
        parent := parents[node_no];
        if parent > 0 then
            sizes[parent] := sizes[parent] + sizes[node_no];
        end if;
    end loop;
    for node_no in 1..n loop
        parent := parents[node_no];
        if parent > 0 then
            place := next_place[parent];
            next_place[parent] := place + sizes[node_no];
            depths[node_no] := depths[parent] + 1;
        else
            place := next_root;
            next_root := place + sizes[node_no];
        end if;
        next_place[node_no] := place + 1;
        node := node_no;
        depth := depths[node_no];
        return next;
    end loop;
end
$$;

comment on function agui_internal.preorder(int[]) is
    'The nodes 1, 2, 3, … of trees, given the parent of each, which has a smaller number (0: a '
    'root): depth (1: a root), and place in an order in which each node comes before its children, '
    'and those before the next node beside it. Takes time in proportion to the number of nodes.';

revoke execute on function agui_internal.preorder(int[]) from public;
