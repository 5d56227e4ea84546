create or replace function agui_internal.load_snapshot(thread_key uuid, run_no int)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    fold agui_internal.fold;
begin
    select
        snapshot.through_seq, list.message_nos, list.message_ids, list.roles, list.bodies,
        snapshot.state::text, snapshot.interrupts::text, snapshot.lanes::text, '{}',
        octet_length(snapshot.state::text) + octet_length(snapshot.interrupts::text) + list.octets, 0
    into fold
    from agui.snapshot as snapshot
    cross join lateral (
        select
            coalesce(array_agg(item.message_no), '{}'),
            coalesce(array_agg(item.message_id), '{}'),
            coalesce(array_agg(item.role), '{}'),
            coalesce(array_agg(item.body), '{}'),
            coalesce(sum(octet_length(item.body)), 0)
        from (
            -- Sorted once for all of the arrays.
            select message.message_no, message.message_id, message.role, message.body::text as body
            from unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
            -- The offset makes this one look-up for each range. A join may read all messages of the
            -- thread.
            cross join lateral (
                select stored.*
                from agui.message as stored
                where stored.thread_key = snapshot.thread_key
                    and stored.message_no >= lower(part.message_nos) and stored.message_no < upper(part.message_nos)
                offset 0
            ) as message
            order by part.position, message.message_no
        ) as item
    ) as list (message_nos, message_ids, roles, bodies, octets)
    where snapshot.thread_key = load_snapshot.thread_key and snapshot.run_no = load_snapshot.run_no and snapshot.rules = agui_internal.rules();

    if not found then
        fold := agui_internal.fold_empty();
    end if;
    return fold;
end
$$;

comment on function agui_internal.load_snapshot(uuid, int) is
    'The fold in the snapshot of a run. If there is none by the present rules, agui_internal.fold_empty().';

revoke execute on function agui_internal.load_snapshot(uuid, int) from public;
