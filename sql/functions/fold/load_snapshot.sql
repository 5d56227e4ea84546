create or replace function agui.load_snapshot(thread_key uuid, run_no int)
returns agui.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui.fold;
begin
    select
        snapshot.through_seq, list.message_nos, list.message_ids, list.roles, list.bodies,
        snapshot.state::text, snapshot.interrupts::text, snapshot.lanes::text
    into fold
    from agui.snapshot as snapshot
    cross join lateral (
        select
            coalesce(array_agg(message.message_no order by part.position, message.message_no), '{}'),
            coalesce(array_agg(message.message_id order by part.position, message.message_no), '{}'),
            coalesce(array_agg(message.role order by part.position, message.message_no), '{}'),
            coalesce(array_agg(message.body::text order by part.position, message.message_no), '{}')
        from unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        join agui.message as message
            on message.thread_key = snapshot.thread_key
                and message.message_no >= lower(part.message_nos) and message.message_no < upper(part.message_nos)
    ) as list (message_nos, message_ids, roles, bodies)
    where snapshot.thread_key = load_snapshot.thread_key and snapshot.run_no = load_snapshot.run_no;

    if not found then
        fold := row(0, '{}', '{}', '{}', '{}', '{}', '[]', null);
    end if;
    return fold;
end
$$;

comment on function agui.load_snapshot(uuid, int) is
    'The fold that a run''s snapshot holds; where there is none, the fold of nothing: no messages, state {}.';

revoke execute on function agui.load_snapshot(uuid, int) from public;
