create or replace function agui_internal.hand_over_bucket(bucket int, to_node text)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    new_epoch bigint;
begin
    perform agui_internal.refuse_unless_operator('move buckets');
    perform agui_internal.refuse_unless_node('hand_over_bucket');
    -- From here on no thread of the bucket is born.
    perform agui_internal.wait_for_lock(agui_internal.bucket_lock_id(bucket), format('bucket %s of the cluster', bucket));
    if exists (
        select from agui.thread as thread
        where agui_internal.bucket_of(thread.thread_key) = hand_over_bucket.bucket and agui_internal.node_of(thread.thread_key) = agui_internal.this_node()
    ) or exists (
        select from agui_internal.claim as claim
        where agui_internal.bucket_of(claim.thread_key) = hand_over_bucket.bucket and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp()
    ) then
        return null;
    end if;
    update agui_internal.bucket as placed
    set node = to_node, epoch = placed.epoch + 1, fenced_in = pg_current_xact_id()
    where placed.bucket = hand_over_bucket.bucket and placed.node = agui_internal.this_node()
    returning placed.epoch into new_epoch;
    if not found then
        raise exception using
            errcode = '55000',
            message = format('bucket %s is not on node "%s"', bucket, agui_internal.this_node());
    end if;
    return new_epoch;
end
$$;

comment on function agui_internal.hand_over_bucket(int, text) is
    'Gives a bucket, whose threads were all moved, to the other node: returns its new epoch, or null if '
    'threads or claims of it are here. The other node refuses new threads until it takes the map '
    'over (agui_internal.take_map). 55P03: writers are in the way, 55000: the bucket is not here.';

revoke execute on function agui_internal.hand_over_bucket(int, text) from public;
