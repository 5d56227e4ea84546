create or replace function agui_internal.hand_over_buckets(buckets int[], to_node text)
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    locked int[];
    given  json;
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('hand_over_buckets');
    -- From here on no thread of these is born. Where a writer is in the way, the next call takes the bucket.
    locked := array(
        select bucket
        from unnest(buckets) as asked (bucket)
        where pg_try_advisory_xact_lock(agui_internal.bucket_lock_id(bucket))
    );
    with used as (
        select bucketed.bucket
        from agui.thread as thread
        left join agui_internal.pinned_scope as pinned
            on pinned.scope_hash = agui_internal.scope_hash(thread.thread_key)
        cross join lateral (select coalesce(pinned.bucket, agui_internal.bucket_of(thread.thread_key)) as bucket) as bucketed
        where bucketed.bucket = any (locked) and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
        union all
        select agui_internal.bucket_of_thread(claim.thread_key)
        from agui_internal.claim as claim
        where agui_internal.bucket_of_thread(claim.thread_key) = any (locked) and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
    ), moved as (
        update agui_internal.bucket as placed
        set node = to_node, epoch = placed.epoch + 1, fenced_in = pg_current_xact_id()
        where placed.bucket = any (locked) and placed.node = agui_internal.this_node() and placed.bucket not in (select used.bucket from used)
        returning placed.bucket, placed.node, placed.epoch
    )
    select json_agg(json_build_object('first', moved.bucket, 'last', moved.bucket, 'node', moved.node, 'epoch', moved.epoch)) into given
    from moved;
    return json_build_object('buckets', coalesce(given, '[]'));
end
$$;

comment on function agui_internal.hand_over_buckets(int[], text) is
    'Gives buckets, whose threads were all moved, to the other node. Returns those that it gave, as in '
    'agui.cluster_map; not those of which threads or claims are here, or that are written to. The '
    'other node refuses new threads of them until it takes the map over '
    '(agui_internal.receive_buckets). 55000: the database is no node.';

revoke execute on function agui_internal.hand_over_buckets(int[], text) from public;
