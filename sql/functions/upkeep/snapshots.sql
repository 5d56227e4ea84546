-- Snapshots as they are stored, and which to keep.
--
-- A snapshot is ranges of message numbers, a state, interrupts and open lanes. A version of a
-- message is stored once for all snapshots and branches of its thread, and is deleted with the last
-- that has it. A snapshot for every run would grow with the square of a thread. So:
--
--   the tip          the youngest run that has ended always has one
--   any other run    keeps one only if the log since the last kept one on its lineage takes at
--                    least twice as many stored bytes as it does (is_worth_keeping, snapshot_bytes)
--
-- All snapshots together then stay smaller than the log that they stand for, and a read folds in
-- proportion to what it returns.
--
-- - 2,500 events behind the last kept snapshot, messages that the tip has too do not count: they
--   are stored in any case. Short messages that streamed as tokens take more bytes than their log,
--   which compresses well, and a thread of 1,000 runs would have no snapshot but that of its tip.
-- - A snapshot is weighed by its uncompressed size before it is written, and by what it really
--   takes when the tip moves on. When the log shrinks (repack, inputs in parts), prune_snapshots
--   drops those that it no longer pays for.
-- - run.log_bytes marks a run as processed. It is set last, and only if last_seq is what was
--   folded: a writer may have continued meanwhile and does not wait for a compactor.
-- - Siblings share versions. So a step that writes or drops snapshots holds the row of the thread.
-- - A message with the text of a part of an input points to the part (part_of_message).
-- - The result of a job's fold is trusted. agui.verify finds a snapshot that is not what the log
--   says.

-- role: worker
create or replace function agui_internal.add_messages(
    thread_key  uuid,
    message_nos int[],
    message_ids text[],
    roles       text[],
    bodies      text[],
    print       boolean[]
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Most threads have none, and to look for each message takes as long as to store it.
    has_parts constant boolean := exists (
        select from agui.input_part as part where part.thread_key = add_messages.thread_key and part.kind = 'message'
    );
begin
    perform agui_internal.own_key(thread_key);
    insert into agui.message_version (thread_key, message_no, part_no, message_id, role, body)
    select
        add_messages.thread_key,
        message.message_no,
        message.part_no,
        coalesce(nullif(message.message_id, ''), agui_internal.json_string_text((agui_internal.json_guard(message.body)::json -> 'id')::text)),
        coalesce(nullif(message.role, ''), agui_internal.json_string_text((agui_internal.json_guard(message.body)::json -> 'role')::text)),
        case when message.part_no is null then message.body::json end
    from (
        select printed.*, case when has_parts then agui_internal.part_of_message(add_messages.thread_key, printed.body) end as part_no
        from (
            select
                added.message_no, added.message_id, added.role,
                case when added.print then agui_internal.fold_patched_body(added.body) else added.body end as body
            from unnest(message_nos, message_ids, roles, bodies, print) as added (message_no, message_id, role, body, print)
        ) as printed
    ) as message;
end
$$;

comment on function agui_internal.add_messages is
    'Stores message versions that were folded outside of the database, before the snapshots that '
    'hold them. An empty id or role is read from the message, for those that text cannot contain. '
    'print: the content was patched and is printed as the reducer in SQL does. The caller holds '
    'the row of the thread.';

-- role: worker
create or replace function agui_internal.add_snapshot(
    thread_key  uuid,
    run_no      int,
    through_seq bigint,
    lows        int[],
    highs       int[],
    state       text,
    print_state boolean,
    interrupts  json,
    lanes       json,
    rules       int default 1
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    perform agui_internal.refuse_other_rules(rules);
    insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, lanes, rules)
    values (
        add_snapshot.thread_key, add_snapshot.run_no, add_snapshot.through_seq,
        array(
            select int4range(part.low, part.high)
            from unnest(lows, highs) with ordinality as part (low, high, position)
            order by part.position
        ),
        case when print_state then agui_internal.json_from_jsonb(agui_internal.json_to_jsonb(add_snapshot.state)) else add_snapshot.state end::json,
        add_snapshot.interrupts, add_snapshot.lanes, add_snapshot.rules
    );
end
$$;

comment on function agui_internal.add_snapshot is
    'Stores the snapshot of a run that was folded outside of the database. lows and highs are the '
    'ranges of its message versions, high excluded. print_state: the state was patched and is '
    'printed as the reducer in SQL does. rules is the version of its rules; programs from before there '
    'were versions give none. The caller holds the row of the thread.';

-- role: worker
create or replace function agui_internal.prune_snapshots(thread_key uuid, from_no int default 1)
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tip     int;
    run_no  int;
    dropped int := 0;
begin
    perform agui_internal.own_key(thread_key);
    perform from agui.thread as thread where thread.thread_key = prune_snapshots.thread_key for no key update skip locked;
    if not found then
        return 0;  -- the holder may be compacting it, and its snapshots stay
    end if;
    -- Not "max", for which a plan may read all of them.
    select run.run_no into tip
    from agui.run
    where run.thread_key = prune_snapshots.thread_key and run.status <> 'running'
    order by run.run_no desc
    limit 1;
    -- Ancestors first: when one is dropped, more log counts for those that follow.
    for run_no in
        select run.run_no
        from agui.snapshot as snapshot
        join agui.run as run
            on run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no
        where snapshot.thread_key = prune_snapshots.thread_key
            and snapshot.run_no >= from_no
            and run.run_no <> tip
            and run.log_bytes is not null
        order by run.run_no
    loop
        if agui_internal.drop_needless_snapshot(thread_key, run_no) then
            dropped := dropped + 1;
        end if;
    end loop;
    return dropped;
end
$$;

comment on function agui_internal.prune_snapshots is
    'Drops the snapshots of a thread that no longer pay after the log of the run from_no, and of others '
    'after it, became smaller (agui.repack). Programs of earlier versions give no run: all are weighed. '
    'Returns how many.';

-- role: worker
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

comment on function agui_internal.drop_needless_snapshot is
    'Drops the snapshot of a run if agui_internal.is_worth_keeping says that it does not pay; '
    'returns whether it did. Far from the snapshot before, only what would go with it counts: the '
    'messages that the tip of the thread has, too, stay. The caller holds the row of the thread.';

create or replace function agui_internal.strict_base(thread_key uuid, run_no int)
returns int
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.fold_base(run.thread_key, run.parent_no)
    from agui.run as run
    where run.thread_key = strict_base.thread_key and run.run_no = strict_base.run_no
$$;

comment on function agui_internal.strict_base is
    'The nearest ancestor of a run that has a snapshot; null if there is none.';

create or replace function agui_internal.held_messages(thread_key uuid, run_no int)
returns int4multirange
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(range_agg(part.message_nos), '{}')
    from agui.snapshot as snapshot
    cross join unnest(snapshot.message_nos) as part (message_nos)
    where snapshot.thread_key = held_messages.thread_key and snapshot.run_no = held_messages.run_no
$$;

comment on function agui_internal.held_messages is
    'The message versions in the snapshot of a run; none if it has no snapshot.';

create or replace function agui_internal.log_bytes_since(thread_key uuid, run_no int, base_no int)
returns bigint
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    thread_key := agui_internal.visible_key(thread_key);
    -- In PL/pgSQL the plan is cached. Planning takes several times as long as execution.
    return (
        with recursive ancestor as (
            select run.thread_key, run.run_no, run.parent_no, run.log_bytes
            from agui.run as run
            where run.thread_key = log_bytes_since.thread_key and run.run_no = log_bytes_since.run_no
            union all
            select parent.thread_key, parent.run_no, parent.parent_no, parent.log_bytes
            from ancestor
            -- The offset makes this one look-up for each, as in agui_internal.ancestors.
            cross join lateral (
                select older.*
                from agui.run as older
                where older.thread_key = ancestor.thread_key and older.run_no = ancestor.parent_no and older.run_no < ancestor.run_no
                offset 0
            ) as parent
            where parent.run_no is distinct from log_bytes_since.base_no
        )
        select coalesce(sum(ancestor.log_bytes), 0)::bigint from ancestor
    );
end
$$;

comment on function agui_internal.log_bytes_since is
    'The stored bytes of log on the lineage of a run, from after the run base_no (null: from the '
    'root) to the end of the run.';

create or replace function agui_internal.snapshot_bytes(document_bytes bigint, new_messages bigint, message_bytes bigint)
returns bigint
language sql
immutable
parallel safe
-- Includes the overhead of the rows.
return 100 + document_bytes + 60 * new_messages + message_bytes;

comment on function agui_internal.snapshot_bytes is
    'The size of a snapshot in bytes, given the bytes of its state and interrupts and the number '
    'and bytes of the message versions that it adds.';

create or replace function agui_internal.is_worth_keeping(log_bytes bigint, snapshot_bytes bigint)
returns boolean
language sql
immutable
parallel safe
return log_bytes >= 2 * snapshot_bytes;

comment on function agui_internal.is_worth_keeping is
    'The rule for snapshots of runs that are not the tip of their thread: since the last kept '
    'snapshot on the lineage, the stored log has grown by at least twice the size of this one. So '
    'all snapshots together stay smaller than the log, and a read folds no more than in proportion '
    'to what it returns.';

-- role: worker
create or replace function agui_internal.drop_snapshots(thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unused int4range[];
begin
    perform agui_internal.own_key(thread_key);
    with dropped as (
        delete from agui.snapshot as snapshot
        where snapshot.thread_key = drop_snapshots.thread_key and snapshot.run_no = any (run_nos)
            -- So that no plan reads all snapshots of the thread.
            and snapshot.run_no >= (select min(number) from unnest(run_nos) as number)
            and snapshot.run_no <= (select max(number) from unnest(run_nos) as number)
        returning snapshot.message_nos
    )
    select array_agg(part) into unused from dropped cross join unnest(dropped.message_nos) as part;
    perform agui_internal.delete_unused_messages(thread_key, unused);
end
$$;

comment on function agui_internal.drop_snapshots is
    'Drops the snapshots of some runs, for example those made while the runs were in progress, with '
    'the message versions that no other snapshot holds. The caller holds the row of the thread.';

create or replace function agui_internal.run_size(thread_key uuid, run_no int, through_seq bigint, out n bigint, out log_bytes bigint)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The run's first_seq as a subquery bounds the scan. As a join, which may read all batches before it, it would not.
    select
        sum(batch.n),
        sum(agui_internal.stored_bytes(batch.events, batch.earlier_us)) + agui_internal.input_bytes(run_size.thread_key, run_size.run_no)
    into n, log_bytes
    from agui.batch as batch
    where batch.thread_key = run_size.thread_key
        and batch.run_no = run_size.run_no
        and batch.first_seq >= (
            select run.first_seq from agui.run as run where run.thread_key = run_size.thread_key and run.run_no = run_size.run_no
        )
        and batch.first_seq <= run_size.through_seq;
end
$$;

comment on function agui_internal.run_size is
    'The number of events of an ended run up to a seq, and the stored size in bytes of its batches '
    'and its input.';

create or replace function agui_internal.stored_bytes(events json, earlier_us int[])
returns bigint
language sql
stable
parallel safe
-- The stored, compressed columns and the overhead of the row.
return pg_column_size(events) + coalesce(pg_column_size(earlier_us), 0) + 70;

comment on function agui_internal.stored_bytes is
    'The stored size of a batch in bytes, given its columns as stored.';

create or replace function agui_internal.input_bytes(thread_key uuid, run_no int)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select coalesce(sum(coalesce(pg_column_size(given.input), pg_column_size(given.skeleton) + pg_column_size(given.sections) + given.part_bytes) + 40), 0)
        from agui.run_input as given
        where given.thread_key = input_bytes.thread_key and given.run_no = input_bytes.run_no
    );
end
$$;

comment on function agui_internal.input_bytes is
    'The stored size in bytes of the input beside the events of a run, with the parts that came with '
    'it; 0: it has none.';

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

comment on function agui_internal.write_snapshot is
    'Stores a fold as the snapshot of a run, in place of its previous one. Messages without a '
    'number are stored as new versions. Returns the fold with their numbers. The caller holds the '
    'row of the thread.';

-- It is inlined.
create or replace function agui_internal.part_of_message(thread_key uuid, body text)
returns int
language sql
stable
parallel safe
-- For less, to look costs more than it saves.
return case when octet_length(body) >= 100 then agui_internal.known_part(thread_key, 'message', body) end;

comment on function agui_internal.part_of_message is
    'The part of the inputs of a thread (agui.input_part) that a message version points to, because it '
    'has the same text; null: the version has a body.';

create or replace function agui_internal.delete_unused_messages(thread_key uuid, message_nos int4range[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- As in agui_internal.previous_tip.
set enable_sort = off
set enable_seqscan = off
set jit = off
as $$
declare
    unused   int4multirange := (select range_agg(part) from unnest(message_nos) as part);
    kept_nos int4range[];
    part     int4range;
begin
    if unused is null then
        return;
    end if;
    -- Usually the newest snapshots hold all of them, and the others are not read.
    for kept_nos in
        select kept.message_nos
        from agui.snapshot as kept
        where kept.thread_key = delete_unused_messages.thread_key
        order by kept.run_no desc
    loop
        unused := unused - (select coalesce(range_agg(held), '{}') from unnest(kept_nos) as held);
        if isempty(unused) then
            return;
        end if;
    end loop;
    -- One look-up for each range, as in agui_internal.load_snapshot.
    foreach part in array array(select unnest(unused)) loop
        delete from agui.message_version as message
        where message.thread_key = delete_unused_messages.thread_key
            and message.message_no >= lower(part) and message.message_no < upper(part);
    end loop;
end
$$;

comment on function agui_internal.delete_unused_messages is
    'Deletes those of the given message versions that no snapshot holds. The caller holds the row '
    'of the thread.';
