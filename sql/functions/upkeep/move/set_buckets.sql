create or replace function agui_internal.set_buckets(map json)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into agui_internal.bucket as known (bucket, node, epoch)
    select number, placed.node, placed.epoch
    from json_to_recordset(map -> 'buckets') as placed (first int, last int, node text, epoch bigint)
    cross join lateral generate_series(placed.first, placed.last) as number
    on conflict (bucket) do update
    set node = excluded.node, epoch = excluded.epoch
    where excluded.epoch > known.epoch;
    -- What the map says now needs no row of its own.
    delete from agui_internal.moved_thread as moved
    using agui_internal.bucket as placed
    where placed.bucket = agui_internal.bucket_of_thread(moved.thread_key)
        and placed.node = moved.node
        and moved.node = (select node.name from agui_internal.node as node);
end
$$;

comment on function agui_internal.set_buckets(json) is
    'Takes the newer buckets of a map (agui.cluster_map) over.';

revoke execute on function agui_internal.set_buckets(json) from public;
