create or replace function agui.write_snapshot(thread_key uuid, run_no int, fold agui.fold)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    last_no  int;
    replaced int4range[];
begin
    select snapshot.message_nos
    into replaced
    from agui.snapshot as snapshot
    where snapshot.thread_key = write_snapshot.thread_key and snapshot.run_no = write_snapshot.run_no;

    select coalesce(max(message.message_no), 0)
    into last_no
    from agui.message as message
    where message.thread_key = write_snapshot.thread_key;

    with item as (
        select
            list.position,
            list.message_no is null as is_new,
            coalesce(list.message_no, last_no + (count(*) filter (where list.message_no is null) over in_order)::int) as message_no,
            list.message_id,
            list.role,
            list.body
        from unnest(fold.message_nos, fold.message_ids, fold.roles, fold.bodies) with ordinality
            as list (message_no, message_id, role, body, position)
        window in_order as (order by list.position)
    ),
    new_message as (
        insert into agui.message (thread_key, message_no, message_id, role, body)
        select write_snapshot.thread_key, item.message_no, item.message_id, item.role, item.body::json
        from item
        where item.is_new
    ),
    stretch_start as (
        select
            item.position,
            item.message_no,
            item.message_no is distinct from lag(item.message_no) over (order by item.position) + 1 as begins
        from item
    ),
    stretch as (
        select message_no, count(*) filter (where begins) over (order by position) as stretch_no
        from stretch_start
    ),
    part as (
        select stretch_no, int4range(min(message_no), max(message_no) + 1) as message_nos
        from stretch
        group by stretch_no
    )
    insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, lanes)
    select
        write_snapshot.thread_key, write_snapshot.run_no, fold.through_seq,
        coalesce((select array_agg(part.message_nos order by part.stretch_no) from part), '{}'),
        fold.state::json, fold.interrupts::json, fold.lanes::json
    on conflict on constraint snapshot_pkey do update
    set through_seq = excluded.through_seq,
        message_nos = excluded.message_nos,
        state = excluded.state,
        interrupts = excluded.interrupts,
        lanes = excluded.lanes,
        created_at = excluded.created_at;

    if replaced is not null then
        perform agui.sweep_messages(thread_key, replaced);
    end if;
end
$$;

comment on function agui.write_snapshot(uuid, int, agui.fold) is
    'Keeps a fold as the snapshot of a run, in place of the one that it has; messages without a number are stored as new versions. '
    'The caller holds the thread''s row.';

revoke execute on function agui.write_snapshot(uuid, int, agui.fold) from public;
