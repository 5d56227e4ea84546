create or replace function agui.drop_needless_snapshot(thread_key uuid, run_no int)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    dropped   agui.snapshot;
    parent_no int;
    base_no   int;
    snapshot_bytes bigint;
begin
    select snapshot.* into dropped
    from agui.snapshot as snapshot
    where snapshot.thread_key = drop_needless_snapshot.thread_key and snapshot.run_no = drop_needless_snapshot.run_no;

    select run.parent_no into parent_no
    from agui.run as run
    where run.thread_key = drop_needless_snapshot.thread_key and run.run_no = drop_needless_snapshot.run_no;
    base_no := agui.fold_base(thread_key, parent_no, 9223372036854775807);

    -- What it takes: its own row and the message versions that it added to those of the snapshot before it.
    select agui.snapshot_bytes(
        pg_column_size(dropped.state) + pg_column_size(dropped.interrupts), count(*), coalesce(sum(pg_column_size(message.body)), 0)
    )
    into snapshot_bytes
    from unnest(dropped.message_nos) as part (message_nos)
    join agui.message as message
        on message.thread_key = drop_needless_snapshot.thread_key
            and message.message_no >= lower(part.message_nos) and message.message_no < upper(part.message_nos)
    where not exists (
        select
        from agui.snapshot as base
        cross join unnest(base.message_nos) as base_part (message_nos)
        where base.thread_key = drop_needless_snapshot.thread_key
            and base.run_no = base_no
            and base_part.message_nos @> message.message_no
    );

    if agui.is_worth_keeping(agui.log_bytes_since(thread_key, run_no, base_no), snapshot_bytes) then
        return false;
    end if;

    delete from agui.snapshot as snapshot
    where snapshot.thread_key = drop_needless_snapshot.thread_key and snapshot.run_no = drop_needless_snapshot.run_no;

    delete from agui.message as message
    using unnest(dropped.message_nos) as part (message_nos)
    where message.thread_key = drop_needless_snapshot.thread_key
        and message.message_no >= lower(part.message_nos) and message.message_no < upper(part.message_nos)
        and not message.message_no <@ (
            select coalesce(range_agg(kept_part.message_nos), '{}')
            from agui.snapshot as kept
            cross join unnest(kept.message_nos) as kept_part (message_nos)
            where kept.thread_key = drop_needless_snapshot.thread_key
        );
    return true;
end
$$;

comment on function agui.drop_needless_snapshot(uuid, int) is
    'Drops a run''s snapshot that agui.is_worth_keeping does not hold to be worth it, with the message versions that no other snapshot '
    'has; answers whether it did. The caller holds the thread''s row.';

revoke execute on function agui.drop_needless_snapshot(uuid, int) from public;
