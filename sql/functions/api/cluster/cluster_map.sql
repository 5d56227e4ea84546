create or replace function agui.cluster_map()
returns json
language sql
stable
security definer
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select json_build_object(
        'node', agui_internal.this_node(),
        'buckets', coalesce(json_agg(json_build_object(
            'first', ranges.first, 'last', ranges.last, 'node', ranges.node, 'epoch', ranges.epoch
        ) order by ranges.first), '[]')
    )
    from (
        select min(placed.bucket) as first, max(placed.bucket) as last, placed.node, placed.epoch
        from (
            select bucket.*, bucket.bucket - row_number() over (partition by bucket.node, bucket.epoch order by bucket.bucket) as island
            from agui_internal.bucket as bucket
        ) as placed
        group by placed.node, placed.epoch, placed.island
    ) as ranges
$$;

comment on function agui.cluster_map() is
    'Which node of the cluster has which buckets (agui.bucket), as this node knows it: {"node": its own '
    'name, "buckets": [{"first", "last", "node", "epoch"}, …]}. Of two maps the greater epoch of a '
    'bucket is the newer one. A database that is no node has a null and an empty list.';

revoke execute on function agui.cluster_map() from public;
