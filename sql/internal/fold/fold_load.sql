create or replace function agui_internal.fold_load(fold agui_internal.fold)
returns agui_internal.fold_node[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    nodes  agui_internal.fold_node[];
    shared record;
begin
    nodes := array(
        select (
            null, message.number, message.role, message.body, null, null, null, null, null, null, null, null, null, null, null, null
        )::agui_internal.fold_node
        from unnest(fold.message_nos, fold.roles, fold.bodies) with ordinality as message (number, role, body, position)
        order by message.position
    );
    if (select count(distinct number) < count(number) from unnest(fold.message_nos) as number) then
        for shared in
            select place.node, place.first_node
            from (
                select message.position as node, min(message.position) over (partition by message.number) as first_node
                from unnest(fold.message_nos) with ordinality as message (number, position)
                where message.number is not null
            ) as place
            where place.node > place.first_node
        loop
            nodes[shared.node].same_as := shared.first_node;
            nodes[shared.first_node].is_shared := true;
        end loop;
    end if;
    return nodes;
end
$function$;

comment on function agui_internal.fold_load(agui_internal.fold) is 'The messages of a fold as nodes, in their order.';

revoke execute on function agui_internal.fold_load(agui_internal.fold) from public;
