create or replace function agui_internal.drop_needless_snapshot(thread_key uuid, run_no int)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    far     constant bigint := 2500;  -- events, which take some 15 ms to fold
    key     constant uuid := agui_internal.own_key(thread_key);
    base_no int := agui_internal.strict_base(thread_key, run_no);
    held    int4multirange := agui_internal.held_messages(thread_key, base_no);
    log_bytes bigint := agui_internal.log_bytes_since(thread_key, run_no, base_no);
    -- The tip keeps its snapshot in any case.
    held_by_tip int4multirange;
    size    record;
begin
    held_by_tip := agui_internal.held_messages(key, (
        -- Not "max", for which a plan may read all of them.
        select other.run_no
        from agui.snapshot as other
        where other.thread_key = key and other.run_no > drop_needless_snapshot.run_no
        order by other.run_no desc
        limit 1
    ));

    select
        agui_internal.snapshot_bytes(
            pg_column_size(snapshot.state) + pg_column_size(snapshot.interrupts), added.n, added.bytes
        ) as beside_base,
        agui_internal.snapshot_bytes(
            pg_column_size(snapshot.state) + pg_column_size(snapshot.interrupts), added.own_n, added.own_bytes
        ) as beside_tip,
        snapshot.through_seq - coalesce(
            (select base.through_seq from agui.snapshot as base where base.thread_key = key and base.run_no = base_no), 0
        ) >= far as is_far
    into size
    from agui.snapshot as snapshot
    cross join lateral (
        -- the message versions that it added to those of the previous snapshot, and of them, those
        -- that would go with it
        select
            count(*) as n,
            coalesce(sum(pg_column_size(message.body)), 0) as bytes,
            count(*) filter (where not message.message_no <@ held_by_tip) as own_n,
            coalesce(sum(pg_column_size(message.body)) filter (where not message.message_no <@ held_by_tip), 0) as own_bytes
        from (
            select unnest(range_agg(listed) - held) as message_nos from unnest(snapshot.message_nos) as listed
        ) as part
        -- The offset makes this one look-up for each range, as in agui_internal.load_snapshot.
        cross join lateral (
            select stored.message_no, stored.body
            from agui.message_version as stored
            where stored.thread_key = snapshot.thread_key
                and stored.message_no >= lower(part.message_nos) and stored.message_no < upper(part.message_nos)
            offset 0
        ) as message
    ) as added
    where snapshot.thread_key = key and snapshot.run_no = drop_needless_snapshot.run_no;

    if agui_internal.is_worth_keeping(log_bytes, size.beside_base)
        or size.is_far and agui_internal.is_worth_keeping(log_bytes, size.beside_tip)
    then
        return false;
    end if;
    perform agui_internal.drop_snapshots(key, array[run_no]);
    return true;
end
$$;

comment on function agui_internal.drop_needless_snapshot(uuid, int) is
    'Drops the snapshot of a run if agui_internal.is_worth_keeping says that it does not pay; '
    'returns whether it did. Far from the snapshot before, only what would go with it counts: the '
    'messages that the tip of the thread has, too, stay. The caller holds the row of the thread.';

revoke execute on function agui_internal.drop_needless_snapshot(uuid, int) from public;
