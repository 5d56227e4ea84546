create or replace function agui_internal.fold_first(nodes agui_internal.fold_node[], key text)
returns int
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select min(node.ordinality)::int
    from unnest(nodes) with ordinality as node
    where node.key = fold_first.key
$function$;

comment on function agui_internal.fold_first(agui_internal.fold_node[], text) is 'The first node that has a key; null when none has it.';

revoke execute on function agui_internal.fold_first(agui_internal.fold_node[], text) from public;
