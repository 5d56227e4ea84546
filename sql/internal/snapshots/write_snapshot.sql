create or replace function agui_internal.write_snapshot(thread_key uuid, run_no int, fold agui_internal.fold)
returns agui_internal.fold
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    numbers     int[] := fold.message_nos;
    new_from    int;  -- the first place without the number of a stored message
    first_place int;
    last_no     int;
    next_no     int;
    replaced    int4range[];
begin
    fold := agui_internal.fold_patched(fold);

    select snapshot.message_nos
    into replaced
    from agui.snapshot as snapshot
    where snapshot.thread_key = write_snapshot.thread_key and snapshot.run_no = write_snapshot.run_no;

    select coalesce(max(message.message_no), 0)
    into last_no
    from agui.message as message
    where message.thread_key = write_snapshot.thread_key;

    -- Usually all messages before it are stored, and most messages are.
    select coalesce(min(list.position), cardinality(numbers) + 1)
    into new_from
    from unnest(numbers) with ordinality as list (number, position)
    where (list.number > 0) is not true;

    next_no := last_no;
    for place in new_from .. cardinality(numbers) loop
        continue when numbers[place] > 0;
        -- Places of one new message share a negative number. A message without a number has one
        -- place.
        first_place := case when numbers[place] < 0 then array_position(fold.message_nos, numbers[place]) end;
        if first_place < place then
            numbers[place] := numbers[first_place];
        else
            next_no := next_no + 1;
            numbers[place] := next_no;
        end if;
    end loop;

    insert into agui.message (thread_key, message_no, message_id, role, body)
    select distinct on (message.number)
        write_snapshot.thread_key, message.number, message.id, message.role, message.body::json
    from unnest(numbers[new_from:], fold.message_ids[new_from:], fold.roles[new_from:], fold.bodies[new_from:]) as message (number, id, role, body)
    where message.number > last_no
    order by message.number;

    with place as (
        select list.position::int, list.number, lag(list.number) over (order by list.position) as before
        from unnest(numbers) with ordinality as list (number, position)
    ),
    part as (
        select
            place.position,
            int4range(
                place.number,
                place.number + lead(place.position, 1, cardinality(numbers) + 1) over (order by place.position) - place.position
            ) as message_nos
        from place
        where place.number is distinct from place.before + 1
    )
    insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, lanes)
    select
        write_snapshot.thread_key, write_snapshot.run_no, fold.through_seq,
        coalesce((select array_agg(part.message_nos order by part.position) from part), '{}'),
        fold.state::json, fold.interrupts::json, fold.lanes::json
    on conflict on constraint snapshot_pkey do update
    set through_seq = excluded.through_seq,
        message_nos = excluded.message_nos,
        state = excluded.state,
        interrupts = excluded.interrupts,
        lanes = excluded.lanes,
        created_at = excluded.created_at;

    if replaced is not null then
        perform agui_internal.delete_unused_messages(thread_key, replaced);
    end if;

    fold.message_nos := numbers;
    return fold;
end
$$;

comment on function agui_internal.write_snapshot(uuid, int, agui_internal.fold) is
    'Stores a fold as the snapshot of a run, in place of its previous one. Messages without a '
    'number are stored as new versions. Returns the fold with their numbers. The caller holds the '
    'row of the thread.';

revoke execute on function agui_internal.write_snapshot(uuid, int, agui_internal.fold) from public;
