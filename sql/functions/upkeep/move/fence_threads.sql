create or replace function agui_internal.fence_threads(thread_keys uuid[], to_node text)
returns uuid[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    buckets int[] := array(select distinct agui_internal.bucket_of_thread(key) as bucket from unnest(thread_keys) as given (key) order by bucket);
    fenced  uuid[];
begin
    perform agui_internal.refuse_unless_operator('move threads');
    perform agui_internal.hold_next_move();
    perform agui_internal.refuse_unless_node('fence_threads');
    -- Behind this lock no writer is left, and what they wrote is committed.
    perform agui_internal.wait_for_lock(agui_internal.bucket_lock_id(bucket), format('bucket %s of the cluster', bucket))
    from unnest(buckets) as given (bucket);
    update agui_internal.bucket as placed set fenced_in = pg_current_xact_id() where placed.bucket = any (buckets);
    fenced := array(
        select thread.thread_key
        from agui.thread as thread
        where thread.thread_key = any (thread_keys)
            and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
            -- A claim ends when its run begins: the next pass takes the thread.
            and not exists (
                select from agui_internal.claim as claim
                where claim.thread_key = thread.thread_key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
            )
    );
    insert into agui_internal.moved_thread as moved (thread_key, node)
    select key, to_node from unnest(fenced) as given (key)
    on conflict (thread_key) do update
    set node = excluded.node, moved_at = excluded.moved_at;
    return fenced;
end
$$;

comment on function agui_internal.fence_threads(uuid[], text) is
    'The first step of a move: from the commit on, calls for these threads are sent to the other node '
    '(UI027), which gets them now. Waits for transactions that write to their buckets, for lock_timeout. '
    'Returns the threads that this holds for: those that are here, and of which no run is claimed. '
    '55P03: writers are in the way, 55000: the database is no node.';

revoke execute on function agui_internal.fence_threads(uuid[], text) from public;
