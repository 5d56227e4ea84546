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
            case when list.message_no > 0 then list.message_no end as stored_no,
            -- Places of one new message share a negative number; a message without a number is alone.
            coalesce(list.message_no::text, 'at ' || list.position) as identity,
            list.message_id,
            list.role,
            list.body
        from unnest(fold.message_nos, fold.message_ids, fold.roles, fold.bodies) with ordinality
            as list (message_no, message_id, role, body, position)
    ),
    new_version as (
        select distinct on (item.identity) item.*
        from item
        where item.stored_no is null
        order by item.identity, item.position
    ),
    numbered as (
        select new_version.*, last_no + (row_number() over (order by new_version.position))::int as message_no
        from new_version
    ),
    new_message as (
        insert into agui.message (thread_key, message_no, message_id, role, body)
        select write_snapshot.thread_key, numbered.message_no, numbered.message_id, numbered.role, numbered.body::json
        from numbered
    ),
    list as (
        select item.position, coalesce(item.stored_no, numbered.message_no) as message_no
        from item
        left join numbered on item.stored_no is null and numbered.identity = item.identity
    ),
    stretch_start as (
        select
            list.position,
            list.message_no,
            list.message_no is distinct from lag(list.message_no) over (order by list.position) + 1 as begins
        from list
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
