create or replace function agui_internal.drop_needless_snapshot(thread_key uuid, run_no int)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key     constant uuid := agui_internal.own_key(thread_key);
    base_no int := agui_internal.strict_base(thread_key, run_no);
    held    int4multirange := agui_internal.held_messages(thread_key, base_no);
    snapshot_bytes bigint;
begin
    select agui_internal.snapshot_bytes(
        pg_column_size(snapshot.state) + pg_column_size(snapshot.interrupts), added.n, added.bytes
    )
    into snapshot_bytes
    from agui.snapshot as snapshot
    cross join lateral (
        -- the message versions that it added to those of the previous snapshot
        select count(*) as n, coalesce(sum(pg_column_size(message.body)), 0) as bytes
        from unnest(snapshot.message_nos) as part (message_nos)
        join agui.message_version as message
            on message.thread_key = snapshot.thread_key
                and message.message_no >= lower(part.message_nos) and message.message_no < upper(part.message_nos)
        where not message.message_no <@ held
    ) as added
    where snapshot.thread_key = drop_needless_snapshot.thread_key and snapshot.run_no = drop_needless_snapshot.run_no;

    if agui_internal.is_worth_keeping(agui_internal.log_bytes_since(thread_key, run_no, base_no), snapshot_bytes) then
        return false;
    end if;
    perform agui_internal.drop_snapshot(thread_key, run_no);
    return true;
end
$$;

comment on function agui_internal.drop_needless_snapshot(uuid, int) is
    'Drops the snapshot of a run if agui_internal.is_worth_keeping says that it does not pay; '
    'returns whether it did. The caller holds the row of the thread.';

revoke execute on function agui_internal.drop_needless_snapshot(uuid, int) from public;
