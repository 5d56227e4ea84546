create or replace function agui_internal.take_map(map json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('change the map of the cluster');
    perform agui_internal.refuse_unless_node('take_map');
    perform agui_internal.set_buckets(map);
end
$$;

comment on function agui_internal.take_map(json) is
    'Takes the newer buckets of the map of another node (agui.cluster_map) over. 55000: the database is no node.';

revoke execute on function agui_internal.take_map(json) from public;
