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
    -- Most threads have none, and to look for each message takes as long as to store it.
    has_parts constant boolean := exists (
        select from agui.input_part as part where part.thread_key = write_snapshot.thread_key and part.kind = 'message'
    );
begin
    if cardinality(fold.state_patches) > 0 then
        fold := agui_internal.fold_patched(fold);
    end if;

    select
        (
            select snapshot.message_nos
            from agui.snapshot as snapshot
            where snapshot.thread_key = write_snapshot.thread_key and snapshot.run_no = write_snapshot.run_no
        ),
        coalesce(
            (
                -- Not "max", for which a plan may read all of them.
                select message.message_no
                from agui.message_version as message
                where message.thread_key = write_snapshot.thread_key
                order by message.message_no desc
                limit 1
            ),
            0
        )
    into replaced, last_no;

    -- Usually all messages before it are stored, and most messages are.
    new_from := coalesce(array_position(numbers, null), cardinality(numbers) + 1);
    if 0 > any (numbers) then
        select least(new_from, min(list.position)) into new_from
        from unnest(numbers) with ordinality as list (number, position)
        where list.number < 0;
    end if;

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

    insert into agui.message_version (thread_key, message_no, part_no, message_id, role, body)
    select
        write_snapshot.thread_key, message.number, message.part_no, message.id, message.role,
        case when message.part_no is null then message.body::json end
    from (
        select distinct on (listed.number)
            listed.*, case when has_parts then agui_internal.part_of_message(write_snapshot.thread_key, listed.body) end as part_no
        from unnest(numbers[new_from:], fold.message_ids[new_from:], fold.roles[new_from:], fold.bodies[new_from:])
            as listed (number, id, role, body)
        where listed.number > last_no
        order by listed.number
    ) as message;

    insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, lanes, rules)
    values (
        write_snapshot.thread_key, write_snapshot.run_no, fold.through_seq, coalesce(agui_internal.ranges_of(numbers), '{}'),
        fold.state::json, fold.interrupts::json, fold.lanes::json, agui_internal.rules()
    )
    on conflict on constraint snapshot_pkey do update
    set through_seq = excluded.through_seq,
        message_nos = excluded.message_nos,
        state = excluded.state,
        interrupts = excluded.interrupts,
        lanes = excluded.lanes,
        rules = excluded.rules,
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
