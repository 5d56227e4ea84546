create or replace function agui_internal.fold_loaded_nodes(roles text[], message_nos int[], has_places boolean)
returns agui_internal.fold_node[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    nodes  agui_internal.fold_node[];
    second record;
begin
    nodes := array(
        select (
            null, message.role, null, message.number, null, null,
            null, null, null, null, null, null,
            nullif(message.position, cardinality(roles)) + 1, null, null, null, null, null,
            null, null, null
        )::agui_internal.fold_node
        from unnest(roles, message_nos) with ordinality as message (role, number, position)
    );
    if has_places then
        for second in
            select place.node, place.first_node
            from (
                select message.position as node, min(message.position) over (partition by message.number) as first_node
                from unnest(message_nos) with ordinality as message (number, position)
                where message.number is not null
            ) as place
            where place.node > place.first_node
        loop
            nodes[second.node].same_as := second.first_node;
            nodes[second.first_node].is_shared := true;
        end loop;
    end if;
    return nodes;
end
$function$;

comment on function agui_internal.fold_loaded_nodes(text[], int[], boolean) is
    'The nodes of the messages of an agui_internal.fold, given their roles and '
    'numbers. has_places: some have several places, which have one number.';

revoke execute on function agui_internal.fold_loaded_nodes(text[], int[], boolean) from public;
