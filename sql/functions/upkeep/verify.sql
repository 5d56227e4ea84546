-- Checks of a thread: its log, and what is derived from the log.
--
--    verify_log         rows of thread, run, batch, input, chain     only reported
--    verify_references  snapshots and what they share, lists, facts  agui.rebuild_snapshots repairs
--    verify_snapshots   each snapshot beside a fold of the log       agui.rebuild_snapshots repairs
--
-- - agui.rebuild_snapshots refuses while the log is damaged (UI015): a snapshot may hold what the
--   log has lost.
-- - What an agent did against the protocol is a note (severity), not damage: events after an end, a
--   second or a missing RUN_STARTED, another thread, parent or input than its writer gave.
-- - No check may fail on what it checks. If the tree is broken, it uses only run numbers, which
--   fall from child to parent, so nothing runs in circles. An incomplete lineage is not folded.
--   Batches and folds that raise an error are reported as such. A parallel query cannot catch
--   errors before PostgreSQL 17, so these functions are not parallel safe.
-- - jobs.Verify reads a thread in one REPEATABLE READ transaction and folds it in Go from the first
--   event, without trusting any snapshot. agui.verify folds in SQL, each snapshot continuing from
--   one that is already proven. Both report the same in the same words.
-- - A changed text that is still an event shows only in a snapshot that covers it, or in a chain.

create or replace function agui_internal.has_activity_since(thread_key uuid, since timestamptz)
returns boolean
language sql
stable
parallel safe
return since is null
    or agui_internal.last_activity_at(has_activity_since.thread_key) >= since
    or exists (
        select
        from agui.snapshot as snapshot
        where snapshot.thread_key = has_activity_since.thread_key and snapshot.created_at >= since
    );

comment on function agui_internal.has_activity_since is
    'Whether something was appended or saved in a thread, or snapshots of it were made, at or '
    'after a time; null: always.';

create or replace function agui_internal.orphaned_keys(scope text default null)
returns setof uuid
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The threads of a scope are one range of keys.
    next_key uuid := coalesce(agui_internal.first_key(scope), '00000000-0000-0000-0000-000000000000');
    last_key constant uuid := coalesce(agui_internal.last_key(scope), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
begin
    -- From each key to the next by the primary keys, however many rows it has.
    loop
        next_key := least(
            (select run.thread_key from agui.run as run where run.thread_key > next_key order by run.thread_key limit 1),
            (select batch.thread_key from agui.batch as batch where batch.thread_key > next_key order by batch.thread_key limit 1),
            (select snapshot.thread_key from agui.snapshot as snapshot where snapshot.thread_key > next_key order by snapshot.thread_key limit 1),
            (select message.thread_key from agui.message_version as message where message.thread_key > next_key order by message.thread_key limit 1),
            (select known.thread_key from agui.session_key as known where known.thread_key > next_key order by known.thread_key limit 1),
            (select state.thread_key from agui.session_state as state where state.thread_key > next_key order by state.thread_key limit 1),
            (select checkpoint.thread_key from agui.checkpoint as checkpoint where checkpoint.thread_key > next_key order by checkpoint.thread_key limit 1),
            (select channel.thread_key from agui.channel as channel where channel.thread_key > next_key order by channel.thread_key limit 1),
            (select activity.thread_key from agui.thread_activity as activity where activity.thread_key > next_key order by activity.thread_key limit 1)
        );
        exit when next_key is null or next_key > last_key;
        perform from agui.thread as thread where thread.thread_key = next_key;
        if not found then
            return next next_key;
        end if;
    end loop;
end
$$;

comment on function agui_internal.orphaned_keys is
    'The keys of rows of a scope (null: of all scopes) that no row of agui.thread has. '
    'agui_internal.verify_log gives details for each.';

create or replace function agui_internal.thread_keys(thread_id text, scope text default '')
returns setof uuid
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select derived.thread_key
    from (values (agui_internal.visible_thread_key(thread_keys.scope, thread_keys.thread_id))) as derived (thread_key)
    where exists (select from agui.thread where thread.thread_key = derived.thread_key)
        or exists (select from agui.run where run.thread_key = derived.thread_key)
        or exists (select from agui.batch where batch.thread_key = derived.thread_key)
        or exists (select from agui.snapshot where snapshot.thread_key = derived.thread_key)
        or exists (select from agui.message_version as message where message.thread_key = derived.thread_key)
        or exists (select from agui.session_key where session_key.thread_key = derived.thread_key)
        or exists (select from agui.session_state where session_state.thread_key = derived.thread_key)
        or exists (select from agui.checkpoint where checkpoint.thread_key = derived.thread_key)
        or exists (select from agui.channel where channel.thread_key = derived.thread_key)
        or exists (select from agui.thread_activity where thread_activity.thread_key = derived.thread_key)
    union
    select thread.thread_key
    from agui.thread as thread
    where thread.thread_id = thread_keys.thread_id
        and thread.scope = thread_keys.scope
        and agui_internal.visible_thread_key(thread_keys.scope, '') is not null
$$;

comment on function agui_internal.thread_keys is
    'The key of a thread, if there is a row with it, and the key of a thread row whose key is '
    'wrong, which is damage.';

create or replace function agui_internal.verify_log(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
security definer
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
-- In a large store the estimates are high, and compiling would take most of the time.
set jit = off
as $$
begin
    thread_key := agui_internal.visible_key(thread_key);
    return query select * from agui_internal.verify_thread(thread_key);
    return query select * from agui_internal.verify_batches(thread_key);
    return query select * from agui_internal.verify_chain(thread_key);
    return query select * from agui_internal.verify_tree(thread_key);
    return query select * from agui_internal.verify_saved(thread_key);
    begin
        return query select * from agui_internal.verify_inputs(thread_key);
    exception
        when others then
            return next (null, 'the inputs cannot be read: ' || sqlerrm, 'damage')::agui.verify_row;
    end;
    begin
        return query select * from agui_internal.verify_runs(thread_key);
    exception
        when others then
            return next (null, 'runs and log cannot be compared: ' || sqlerrm, 'damage')::agui.verify_row;
    end;
end
$$;

comment on function agui_internal.verify_log is
    'The damage of what was appended to a thread (its row, batches, runs and their tree) and of '
    'what was saved in it. None of it can be rebuilt. Also notes on what agents did against the '
    'protocol.';

create or replace function agui_internal.verify_thread(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        select null::text, problem.text, 'damage'
        from (values (verify_thread.thread_key)) as checked (thread_key)
        left join agui.thread as thread on thread.thread_key = checked.thread_key
        cross join lateral (select agui_internal.erased_at(checked.thread_key)) as erasure (erased_at)
        cross join lateral (select agui.thread_key(thread.scope, thread.thread_id)) as derived (thread_key)
        cross join lateral (
            select
                concat_ws(', ',
                    case when exists (select from agui.batch where batch.thread_key = checked.thread_key) then 'batches' end,
                    case when exists (select from agui.run where run.thread_key = checked.thread_key) then 'runs' end,
                    case when exists (select from agui.snapshot where snapshot.thread_key = checked.thread_key) then 'snapshots' end,
                    case when exists (select from agui.message_version as message where message.thread_key = checked.thread_key) then 'messages' end,
                    case
                        when exists (select from agui.session_key where session_key.thread_key = checked.thread_key)
                            or exists (select from agui.session_state where session_state.thread_key = checked.thread_key) then 'session state'
                    end,
                    case when exists (select from agui.checkpoint where checkpoint.thread_key = checked.thread_key) then 'checkpoints' end,
                    case when exists (select from agui.thread_activity where thread_activity.thread_key = checked.thread_key) then 'a place in lists' end
                )
        ) as it (has)
        cross join lateral (
            values
                -- A thread that was erased since it was listed has no rows at all. That is no damage.
                (thread.thread_key is null and it.has <> '',
                    format('no row of agui.thread has the key %s, to which these belong: %s', checked.thread_key, it.has)),
                (thread.thread_key <> derived.thread_key,
                    format('the thread has the key %s, that of its scope and id is %s', thread.thread_key, derived.thread_key)),
                -- A thread created by agui.set_thread is as active as it was then; one whose runs are
                -- lost is not.
                (thread.thread_key is not null and it.has !~ 'runs|session state|checkpoints'
                        and not exists (
                            select
                            from agui.thread_activity as activity
                            where activity.thread_key = checked.thread_key and activity.active_at = thread.created_at
                        ),
                    'the thread has no runs'),
                (erasure.erased_at is not null and (thread.thread_key is not null or it.has <> ''),
                    format('the thread was erased at %s, yet there are rows of it', erasure.erased_at))
        ) as problem (is_there, text)
        where problem.is_there;
end
$$;

comment on function agui_internal.verify_thread is
    'The damage of the row of a thread: its key is wrong, or the row is missing.';

create or replace function agui_internal.verify_batches(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
-- In tables without statistics a nested loop would read all runs of the thread for each.
set enable_nestloop = off
set jit = off
as $$
declare
    batch    record;
    events_n int;
    no_event_at bigint;
    unusable    text;
    times_in_order boolean;
    problems    text[];
begin
    for batch in
        select
            stored.first_seq,
            stored.n,
            stored.run_no,
            run.run_id,
            stored.recorded_at,
            stored.events,
            stored.earlier_us,
            agui_internal.event_time(stored.recorded_at, stored.earlier_us[1]) as begun_at,
            coalesce(lag(stored.first_seq + stored.n) over in_order, 1) as expected_seq,
            lag(stored.recorded_at) over in_order as previous_at
        from agui.batch as stored
        left join agui.run as run
            on run.thread_key = stored.thread_key and run.run_no = stored.run_no
        where stored.thread_key = verify_batches.thread_key
        window in_order as (order by stored.first_seq)
        order by stored.first_seq
    loop
        events_n := null;
        no_event_at := null;
        unusable := null;
        begin
            if json_typeof(batch.events) = 'array' then
                select count(*), min(element.position) filter (where json_typeof(element.value) <> 'object')
                into events_n, no_event_at
                from json_array_elements(batch.events) with ordinality as element (value, position);
            else
                unusable := format('the batch at seq %s holds a JSON %s in place of an array of events', batch.first_seq, json_typeof(batch.events));
            end if;
        exception
            when others then
                unusable := format('the batch at seq %s cannot be read: %s', batch.first_seq, sqlerrm);
        end;

        times_in_order := true;
        if batch.earlier_us is not null then
            times_in_order := batch.earlier_us = array(select earlier.us from unnest(batch.earlier_us) as earlier (us) where earlier.us >= 0 order by earlier.us desc);
        end if;
        problems := array_remove(
            array[
                case when batch.first_seq <> batch.expected_seq then
                    format('the batch at seq %s should begin at seq %s: events are missing or double', batch.first_seq, batch.expected_seq)
                end,
                unusable,
                case when events_n <> batch.n then
                    format('the batch at seq %s holds %s events, its row says %s', batch.first_seq, events_n, batch.n)
                end,
                case when no_event_at is not null then
                    format('the event at seq %s is not a JSON object', batch.first_seq + no_event_at - 1)
                end,
                case when batch.run_id is null then
                    format('the batch at seq %s belongs to run number %s, which does not exist', batch.first_seq, batch.run_no)
                end,
                case when cardinality(batch.earlier_us) <> batch.n then
                    format('the batch at seq %s has the times of %s events, its row says %s', batch.first_seq, cardinality(batch.earlier_us), batch.n)
                end,
                case when not times_in_order then
                    format('the times of the events in the batch at seq %s are not in order', batch.first_seq)
                end,
                case when batch.begun_at < batch.previous_at then
                    format('the batch at seq %s was recorded before the one that precedes it', batch.first_seq)
                end
            ],
            null
        );
        if problems <> '{}' then
            return query select batch.run_id, unnest(problems), 'damage';
        end if;
    end loop;
end
$$;

comment on function agui_internal.verify_batches is
    'The damage of the batches of a thread: seqs, counts, invalid events, runs, times.';

create or replace function agui_internal.verify_chain(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The first run that must be chained. A transaction that was in progress when the chain was
    -- enabled may not have seen it, so a minute is allowed for.
    due_seq constant bigint := (
        select run.first_seq
        from agui.run as run
        where run.thread_key = verify_chain.thread_key
            and run.started_at > (
                select min(chained.since) + interval '1 minute'
                from agui.thread as thread
                join agui_internal.chained_scope as chained
                    on chained.is_all or chained.scope = thread.scope
                where thread.thread_key = verify_chain.thread_key
            )
        order by run.run_no
        limit 1
    );
    first_hash_seq constant bigint := (
        select min(batch.first_seq)
        from agui.batch as batch
        where batch.thread_key = verify_chain.thread_key and batch.hash is not null
    );
begin
    return query
        select run.run_id,
            format(
                case
                    when batch.first_seq > first_hash_seq then 'chain: the batch at seq %s has no hash, but what precedes it is chained'
                    else 'chain: the batch at seq %s has no hash, although its run began after agui.enable_chain'
                end,
                batch.first_seq
            ),
            'damage'
        from agui.batch as batch
        left join agui.run as run
            on run.thread_key = batch.thread_key and run.run_no = batch.run_no
        where batch.thread_key = verify_chain.thread_key
            and batch.hash is null
            -- Of those before the first hash, the first one that must have one is sufficient.
            and (
                batch.first_seq > first_hash_seq
                or batch.first_seq = (
                    select min(due.first_seq)
                    from agui.batch as due
                    where due.thread_key = verify_chain.thread_key and due.first_seq >= due_seq
                )
            )
        order by batch.first_seq;
end
$$;

comment on function agui_internal.verify_chain is
    'The batches of a thread that must have a hash (agui.enable_chain) and have none. Whether hashes '
    'are right is computed by pgagui verify --chain, outside of the database.';

create or replace function agui_internal.verify_tree(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- In tables without statistics a nested loop would read all runs of the thread for each.
set enable_nestloop = off
set jit = off
as $$
begin
    return query
        with run as (
            select
                run.thread_key, run.run_no, run.run_id, run.parent_no, run.status, run.first_seq, run.last_seq,
                coalesce(lag(run.run_no) over in_order, 0) + 1 as expected_no,
                lag(run.run_id) over in_order as previous_id,
                lag(run.first_seq) over in_order as previous_first_seq,
                count(*) over (partition by run.run_id) as runs_with_id
            from agui.run as run
            where run.thread_key = verify_tree.thread_key
            window in_order as (order by run.run_no)
        )
        select run.run_id, problem.text, 'damage'
        from run
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        left join lateral (
            -- The tree can contain a circle only if a parent is not older; "union" follows it once.
            with recursive ancestor as (
                select parent.run_no, parent.parent_no
                where parent.run_no >= run.run_no
                union
                select older.run_no, older.parent_no
                from ancestor
                join agui.run as older
                    on older.thread_key = run.thread_key and older.run_no = ancestor.parent_no
            )
            select exists (select from ancestor where ancestor.parent_no = run.run_no)
        ) as circle (is_closed) on true
        cross join lateral (
            values
                (run.run_no <> run.expected_no,
                    format('the run has the number %s, not %s: runs are missing', run.run_no, run.expected_no)),
                (run.runs_with_id > 1,
                    format('run number %s has the id of another run of the thread', run.run_no)),
                (run.first_seq <= run.previous_first_seq,
                    format('the run begins at seq %s, which is not after the run "%s" began', run.first_seq, run.previous_id)),
                (run.status not in ('running', 'finished', 'interrupted', 'cancelled', 'failed', 'cut_off'),
                    format('the run has an unknown status, "%s"', run.status)),
                (run.parent_no is not null and parent.run_no is null,
                    format('the run''s parent, run number %s, does not exist', run.parent_no)),
                (circle.is_closed,
                    format('the run is its own ancestor: from its parent "%s" the tree leads back to it', parent.run_id)),
                (parent.run_no >= run.run_no and not circle.is_closed,
                    format('the run''s parent "%s" is not older than the run', parent.run_id)),
                (parent.run_no < run.run_no and (parent.status = 'running' or parent.last_seq is null or parent.last_seq >= run.first_seq),
                    format('the run began before its parent "%s" had ended', parent.run_id))
        ) as problem (is_there, text)
        where problem.is_there
        order by run.run_no;
end
$$;

comment on function agui_internal.verify_tree is
    'The damage of the tree of the runs of a thread: numbers, ids, parents, cycles.';

create or replace function agui_internal.verify_saved(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with key as (
            select
                coalesce(known.key, state.key) as key,
                known.last_version,
                max(state.version) as newest
            from (select * from agui.session_key as known where known.thread_key = verify_saved.thread_key) as known
            full join (select * from agui.session_state as state where state.thread_key = verify_saved.thread_key) as state using (key)
            group by 1, 2
        ),
        checkpoint as (
            select
                checkpoint.checkpoint_no, checkpoint.checkpoint_id, checkpoint.namespace, checkpoint.parent_no,
                coalesce(lag(checkpoint.checkpoint_no) over (order by checkpoint.checkpoint_no), 0) + 1 as expected_no,
                parent.checkpoint_no is not null and parent.namespace = checkpoint.namespace as has_parent
            from agui.checkpoint as checkpoint
            left join agui.checkpoint as parent
                on parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
            where checkpoint.thread_key = verify_saved.thread_key
        ),
        channel as (
            select channel.channel_no, channel.name, channel.parts, count(part.part_no) as stored, coalesce(max(part.part_no), 0) as newest
            from agui.channel as channel
            left join agui.channel_part as part using (thread_key, channel_no)
            where channel.thread_key = verify_saved.thread_key
            group by channel.channel_no, channel.name, channel.parts
        ),
        reference as (
            select value.channel_no, format('version %s', value.version) as subject, value.part_nos
            from agui.channel_value as value
            where value.thread_key = verify_saved.thread_key
            union all
            select written.channel_no, format('what task "%s" wrote after checkpoint number %s', written.task_id, written.checkpoint_no), written.part_nos
            from agui.checkpoint_write as written
            where written.thread_key = verify_saved.thread_key
        )
        select null::text, problem.text, 'damage'
        from (
            select 1 as kind, key.key as place, 0::bigint as number,
                case
                    when key.last_version is null then format('session state of the key "%s" is not numbered', key.key)
                    when key.newest is null then format('version %s of session state of the key "%s" is missing, the newest one', key.last_version, key.key)
                    when key.newest < key.last_version then
                        format('version %s of session state of the key "%s" is missing, the newest one is %s', key.last_version, key.key, key.newest)
                    else format('session state of the key "%s" has version %s, beyond the last number given, %s', key.key, key.newest, key.last_version)
                end as text
            from key
            where key.newest is distinct from key.last_version
            union all
            select 2, state.key, state.version,
                format('version %s of session state of the key "%s" belongs to run number %s, which does not exist', state.version, state.key, state.run_no)
            from agui.session_state as state
            left join agui.run as run
                on run.thread_key = state.thread_key and run.run_no = state.run_no
            where state.thread_key = verify_saved.thread_key and state.run_no <> 0 and run.run_no is null
            union all
            select 3, '', checkpoint.checkpoint_no,
                format('checkpoint "%s" has the number %s, not %s: checkpoints are missing', checkpoint.checkpoint_id, checkpoint.checkpoint_no, checkpoint.expected_no)
            from checkpoint
            where checkpoint.checkpoint_no <> checkpoint.expected_no
            union all
            select 4, '', checkpoint.checkpoint_no,
                format('the parent of checkpoint "%s", number %s, does not exist in its namespace', checkpoint.checkpoint_id, checkpoint.parent_no)
            from checkpoint
            where checkpoint.parent_no is not null and not checkpoint.has_parent
            union all
            select 5, channel.name, channel.channel_no,
                format('channel "%s" has %s parts up to number %s, not %s', channel.name, channel.stored, channel.newest, channel.parts)
            from channel
            where channel.stored <> channel.parts or channel.newest <> channel.parts
            union all
            select 6, coalesce(channel.name, ''), reference.channel_no,
                case
                    when channel.channel_no is null then format('%s belongs to channel number %s, which does not exist', reference.subject, reference.channel_no)
                    else format('%s of channel "%s" refers to parts beyond number %s', reference.subject, channel.name, channel.newest)
                end
            from reference
            left join channel using (channel_no)
            where channel.channel_no is null
                or exists (select from unnest(reference.part_nos) as run where upper(run) > channel.newest + 1 or lower(run) < 1)
        ) as problem
        order by problem.kind, problem.place, problem.number;
end
$$;

comment on function agui_internal.verify_saved is
    'The damage of the session state and the checkpoints of a thread: numbers, runs, parents, and the '
    'parts of channels. The contents of documents are not checked.';

create or replace function agui_internal.verify_inputs(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with section as (
            select stored.run_no, case listed.kind when 'beginning' then 'message' else listed.kind end as kind, range.part_nos
            from agui.run_input as stored
            cross join jsonb_to_recordset(stored.sections) as listed (kind text, part_nos int4range[])
            cross join unnest(listed.part_nos) as range (part_nos)
            where stored.thread_key = verify_inputs.thread_key
        ),
        missing as (
            -- The first part that is missing in each input.
            select distinct on (section.run_no) section.run_no, section.kind, number.part_no
            from section
            -- A damaged range may have any length.
            cross join lateral generate_series(
                lower(section.part_nos),
                least(upper(section.part_nos) - 1, (
                    select coalesce(max(part.part_no), 0) + 1
                    from agui.input_part as part
                    where part.thread_key = verify_inputs.thread_key and part.kind = section.kind
                ))
            ) as number (part_no)
            where not exists (
                select
                from agui.input_part as part
                where part.thread_key = verify_inputs.thread_key and part.kind = section.kind and part.part_no = number.part_no
            )
            order by section.run_no, section.kind, number.part_no
        )
        select run.run_id, problem.text, 'damage'
        from agui.run_input as stored
        left join agui.run as run
            on run.thread_key = stored.thread_key and run.run_no = stored.run_no
        left join missing on missing.run_no = stored.run_no
        cross join lateral (
            select case
                when (stored.input is null) <> (stored.skeleton is not null and stored.sections is not null)
                    or stored.input is null and stored.hash is null
                    then 'the row of the input beside the events of the run is neither whole nor in parts'
                when missing.run_no is not null
                    then format('the input beside the events of the run lacks a part, number %s of the kind %s', missing.part_no, missing.kind)
                when agui_internal.stored_input_hash(stored.thread_key, stored.run_no) <> stored.hash
                    then 'the input beside the events of the run does not have its hash'
            end as text
        ) as problem
        where stored.thread_key = verify_inputs.thread_key and problem.text is not null
        order by stored.run_no;
    -- Folds skip messages by these columns, and count them.
    return query
        select null::text, format('the part number %s of the kind %s of inputs does not have the size and the id of its text', part.part_no, part.kind), 'damage'
        from agui.input_part as part
        cross join lateral (select agui_internal.json_guard(part.body::text) as guarded offset 0) as text
        where part.thread_key = verify_inputs.thread_key
            and (part.bytes, part.message_id) is distinct from (octet_length(text.guarded), agui_internal.message_id_of(part.kind, text.guarded))
        order by part.kind, part.part_no;
end
$$;

comment on function agui_internal.verify_inputs is
    'The damage of the inputs beside the events of the runs of a thread: rows that are neither whole '
    'nor in parts, parts that are missing, and hashes, sizes and ids that do not fit.';

create or replace function agui_internal.verify_runs(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- In tables without statistics a nested loop would read all runs of the thread for each.
set enable_nestloop = off
set jit = off
as $$
begin
    return query
        with log as (
            select
                batch.run_no,
                min(batch.first_seq) as first_seq,
                max(batch.first_seq + batch.n - 1) as last_seq,
                sum(batch.n) as n
            from agui.batch as batch
            where batch.thread_key = verify_runs.thread_key
            group by batch.run_no
        ),
        life_event as materialized (
            select * from agui_internal.life_cycle(verify_runs.thread_key)
        ),
        start as (
            select
                life_event.*,
                row_number() over (partition by life_event.run_no order by life_event.place) as nth
            from life_event
            where life_event.type = 'RUN_STARTED'
        ),
        foreign_start as (
            select distinct on (start.run_no) start.*
            from start
            join agui.run as run
                on run.thread_key = verify_runs.thread_key and run.run_no = start.run_no
            where start.run_id <> replace(run.run_id, '\', '\u005c')
            order by start.run_no, start.place
        ),
        stray_start as (
            select distinct on (start.run_no) start.*
            from start
            join agui.thread as thread on thread.thread_key = verify_runs.thread_key
            where start.thread_id <> replace(thread.thread_id, '\', '\u005c')
            order by start.run_no, start.place
        ),
        -- Of the events that end the run: the first one, the last one, and the first after which something
        -- comes. As in the official client, RUN_ERROR may directly follow RUN_FINISHED.
        ending as (
            select
                closing.run_no,
                (array_agg(closing.type order by closing.place desc))[1] as type,
                (array_agg(closing.status order by closing.place desc))[1] as status,
                (array_agg(closing.seq order by closing.place desc))[1] as seq,
                max(closing.place) as place,
                min(closing.place) filter (where not closing.is_taken_back) as first_place,
                (array_agg(closing.type order by closing.place) filter (where not closing.is_taken_back))[1] as first_type,
                (array_agg(closing.seq order by closing.place) filter (where not closing.is_taken_back))[1] as first_seq
            from (
                select
                    life_event.*,
                    coalesce(
                        life_event.type = 'RUN_FINISHED'
                            and lead(life_event.type) over in_order = 'RUN_ERROR'
                            and lead(life_event.place) over in_order = life_event.place + 1,
                        false
                    ) as is_taken_back
                from life_event
                where life_event.type <> 'RUN_STARTED' and not life_event.is_late
                window in_order as (partition by life_event.run_no order by life_event.place)
            ) as closing
            group by closing.run_no
        )
        select run.run_id, problem.text, problem.severity
        from agui.run as run
        -- Whether its status may be by older rules.
        cross join (select agui_internal.waits_for_rules(verify_runs.thread_key) as is_older) as by_rules
        left join log on log.run_no = run.run_no
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        left join life_event as opening
            on opening.run_no = run.run_no and opening.place = 1 and opening.type in ('RUN_STARTED', 'RUN_ERROR')
        left join start as first_start on first_start.run_no = run.run_no and first_start.nth = 1
        left join start as restart on restart.run_no = run.run_no and restart.nth = 2
        left join foreign_start on foreign_start.run_no = run.run_no
        left join stray_start on stray_start.run_no = run.run_no
        left join ending on ending.run_no = run.run_no
        left join agui.run_input as stored
            on stored.thread_key = run.thread_key and stored.run_no = run.run_no
        cross join lateral (
            -- agui_internal.verify_inputs reports an input that cannot be read as it was. One in parts was an
            -- object; it is joined only to be compared.
            select case
                when stored.input is null and first_start.input is null then null
                when coalesce(agui_internal.stored_input_hash(run.thread_key, run.run_no) = stored.hash, stored.input is not null) then (
                    select given.input
                    from agui.input as given
                    where given.thread_key = run.thread_key and given.run_no = run.run_no
                )
            end as input
            offset 0  -- computed once
        ) as beside
        -- The parent that the first event names. Later events never change it.
        cross join lateral (
            select
                case when opening.type = 'RUN_STARTED' then opening.parent_run_id end as named_at_start,
                coalesce(replace(parent.run_id, '\', '\u005c'), '') as stored
        ) as parent_of
        cross join lateral (
            select case
                when run.cut_off_reason is not null and ending.type = 'RUN_ERROR' then 'cut_off'
                else coalesce(ending.status, 'running')
            end as status
        ) as by_log
        cross join lateral (
            values
                ('damage', log.n is null, 'the run has no events'),
                ('damage', log.first_seq <> run.first_seq,
                    format('the run should begin at seq %s, its first event is at seq %s', run.first_seq, log.first_seq)),
                ('damage', run.status <> 'running' and log.last_seq <> run.last_seq,
                    format('the run should end at seq %s, its last event is at seq %s', run.last_seq, log.last_seq)),
                ('damage', run.status <> 'running' and run.last_seq is null, 'the run has ended, its row does not say where'),
                ('damage', run.status = 'running' and run.last_seq is not null,
                    format('the run is in progress, its row says that it ended at seq %s', run.last_seq)),
                -- If it counts fewer, compaction can count them: see agui_internal.verify_references.
                ('damage', log.n < run.n,
                    format('the run''s row counts %s events, its log has %s', run.n, log.n)),
                ('damage', foreign_start.seq is not null,
                    format('the run''s RUN_STARTED names another run, "%s"', foreign_start.run_id)),
                ('damage', log.n is not null and run.status <> by_log.status and not by_rules.is_older,
                    format('the run is marked as %s, by its log it is %s', run.status, by_log.status)),
                ('damage', run.end_seq <> ending.seq and not by_rules.is_older,
                    format('the run''s last end is at seq %s, its row says %s', ending.seq, run.end_seq)),
                ('damage', run.cut_off_reason is not null and (ending.type is distinct from 'RUN_ERROR' or ending.place < log.n),
                    'the run''s row says that it was cut off, its log has no RUN_ERROR that ends it'),
                -- Unless its writer gave the parent, it is the one that RUN_STARTED names, else the run
                -- begun last.
                ('damage', not run.parent_given and parent_of.named_at_start <> parent_of.stored,
                    format('the run''s RUN_STARTED names the parent "%s", its row %s',
                        parent_of.named_at_start, coalesce('"' || parent.run_id || '"', 'none'))),
                ('damage', not run.parent_given and log.n is not null and parent_of.named_at_start is null
                        and run.parent_no is distinct from nullif(run.run_no - 1, 0),
                    format('the run''s %s names no parent, so it %s, its row says %s',
                        coalesce(opening.type, 'first event'), case when run.run_no = 1 then 'is a root' else 'follows the run before it' end,
                        coalesce('"' || parent.run_id || '"', 'none'))),
                ('damage', json_typeof(beside.input) <> 'object',
                    format('the input beside the events of the run is a JSON %s, not an object', json_typeof(beside.input))),

                ('note', log.n is not null and opening.type is null, 'the run does not begin with RUN_STARTED'),
                ('note', restart.seq is not null,
                    format('the run has a second RUN_STARTED, at seq %s', restart.seq)),
                ('note', log.n > ending.first_place,
                    format('the run goes on after the %s at seq %s that ended it, to seq %s', ending.first_type, ending.first_seq, log.last_seq)),
                ('note', stray_start.seq is not null,
                    format('the RUN_STARTED at seq %s names another thread, "%s"', stray_start.seq, stray_start.thread_id)),
                ('note', (run.parent_given or first_start.place > 1) and first_start.parent_run_id <> parent_of.stored,
                    format('the RUN_STARTED at seq %s names the parent "%s", the run %s',
                        first_start.seq, first_start.parent_run_id, coalesce('follows "' || parent.run_id || '"', 'is a root'))),
                ('note', first_start.input is not null and beside.input is not null
                        and not agui_internal.json_equal(agui_internal.json_unguard(first_start.input::text), beside.input::text),
                    format('the RUN_STARTED at seq %s carries another input than is stored beside the events: its own counts', first_start.seq))
        ) as problem (severity, is_there, text)
        where run.thread_key = verify_runs.thread_key
            and problem.is_there
        order by run.run_no;
end
$$;

comment on function agui_internal.verify_runs is
    'The differences between the rows of the runs of a thread and its log: bounds, the events that '
    'begin and end runs, the parents that they name. Also notes: a run that does not begin or end '
    'as the protocol requires, or a RUN_STARTED that differs from what its writer gave.';

create or replace function agui_internal.verify_references(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
set search_path = pg_catalog, pg_temp
-- In a large store the estimates are high, and compiling would take most of the time.
set jit = off
as $$
begin
    return query
        with stored as (
            select coalesce(range_agg(int4range(message.message_no, message.message_no, '[]')), '{}') as message_nos
            from agui.message as message
            where message.thread_key = verify_references.thread_key
        ),
        held as (
            select snapshot.run_no, run.run_id, coalesce(range_agg(part.message_nos), '{}') as message_nos
            from agui.snapshot as snapshot
            left join agui.run as run
                on run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no
            left join unnest(snapshot.message_nos) as part (message_nos) on true
            where snapshot.thread_key = verify_references.thread_key
            group by snapshot.run_no, run.run_id
        ),
        problem as (
            select 1 as kind, held.run_no as place, held.run_id,
                format('there is a snapshot of run number %s, which does not exist', held.run_no) as text
            from held
            where held.run_id is null
            union all
            select 2, held.run_no, held.run_id,
                format('the snapshot points to message versions that do not exist: %s', held.message_nos - stored.message_nos)
            from held
            cross join stored
            where not held.message_nos <@ stored.message_nos
            union all
            select 3, 0, null, format('no snapshot holds the message versions %s', leaked.message_nos)
            from (
                select stored.message_nos - coalesce((select range_agg(held.message_nos) from held), '{}')
                from stored
            ) as leaked (message_nos)
            where not isempty(leaked.message_nos)
            union all
            select 4, version.message_no, null,
                format('message version %s points to a part of inputs that does not exist, number %s', version.message_no, version.part_no)
            from agui.message_version as version
            where version.thread_key = verify_references.thread_key
                and version.part_no is not null
                and not exists (
                    select
                    from agui.input_part as part
                    where part.thread_key = version.thread_key and part.kind = 'message' and part.part_no = version.part_no
                )
            union all
            select 4, message.message_no, null, format('message version %s has another id or role than its body', message.message_no)
            from agui.message as message
            where message.thread_key = verify_references.thread_key
                and message.body is not null
                and not agui_internal.has_id_and_role(message.body, message.message_id, message.role)
            union all
            -- Compaction processed the run and marked it without the events that its writer appended
            -- after the end in the meantime.
            select 5, run.run_no, run.run_id,
                format('the run''s row counts %s events, its log has %s', run.n, log.n)
            from agui.run as run
            join (
                select batch.run_no, sum(batch.n) as n
                from agui.batch as batch
                where batch.thread_key = verify_references.thread_key
                group by batch.run_no
            ) as log on log.run_no = run.run_no
            where run.thread_key = verify_references.thread_key and run.n < log.n
            union all
            select 6, 0, null,
                case
                    when activity.thread_key is null then 'the thread is missing in lists: it has no row in agui.thread_activity'
                    when activity.scope_key <> agui_internal.scope_key(thread.thread_key) then 'the thread is in the lists of another scope'
                    else format('in lists the thread was last active at %s, a run of it began or ended later', activity.active_at)
                end
            from agui.thread as thread
            left join agui.thread_activity as activity
                on activity.thread_key = thread.thread_key
            where thread.thread_key = verify_references.thread_key
                and (
                    activity.scope_key is distinct from agui_internal.scope_key(thread.thread_key)
                    or activity.active_at < agui_internal.active_at(thread)
                )
        )
        select problem.run_id, problem.text, 'damage'
        from problem
        order by problem.kind, problem.place;
    if not agui_internal.waits_for_facts(thread_key) then
        return query select * from agui_internal.verify_facts(thread_key);
    end if;
end
$$;

comment on function agui_internal.verify_references is
    'The inconsistencies between the snapshots of a thread, their runs and the message versions '
    'that they share; runs of which compaction did not count all events; and a wrong entry of the '
    'thread in lists.';

-- A function of its own, so that what it reads of a large message is freed at once.
create or replace function agui_internal.has_id_and_role(body json, message_id text, role text)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    guarded  constant json := agui_internal.json_guarded(body);
    own_id   constant text := guarded -> 'id';
    own_role constant text := guarded -> 'role';
begin
    return agui_internal.json_string_text(own_id) is not distinct from message_id
        and agui_internal.json_string_text(own_role) is not distinct from role;
end
$$;

comment on function agui_internal.has_id_and_role is
    'Whether a message has the id and role that the row of its version says.';

-- How far the jobs are is so for all scopes.
-- check: none
create or replace function agui_internal.waits_for_facts(thread_key uuid)
returns boolean
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return not exists (
        select
        from agui_internal.projection as state
        where state.scan_key is null or state.scan_key > waits_for_facts.thread_key
    );
end
$$;

comment on function agui_internal.waits_for_facts is
    'Whether agui.project() is to read all runs of a thread: for the first time, or once more, because what facts say has '
    'changed (agui.map_usage, an upgrade).';

create or replace function agui_internal.verify_facts(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    run_nos int[];
    runs    agui.run[];
begin
    -- A run that has changed since is projected by the next call of the job.
    select array_agg(run.run_no), array_agg(run) into run_nos, runs
    from agui.projected_run as projected
    join agui.run as run
        on run.thread_key = projected.thread_key and run.run_no = projected.run_no
    where projected.thread_key = verify_facts.thread_key
        and projected.changed_in is not distinct from run.changed_in
        and run.status <> 'running';

    return query
    with stored as (
        select projected.run_no, 'the run' as about, to_jsonb(projected) as fact
        from agui.projected_run as projected
        where projected.thread_key = verify_facts.thread_key
        union all
        select call.run_no, 'its tool calls', to_jsonb(call)
        from agui.projected_call as call
        where call.thread_key = verify_facts.thread_key
        union all
        select interrupt.run_no, 'its interrupts', to_jsonb(interrupt) - '{is_open,arguments}'::text[]
        from agui.projected_interrupt as interrupt
        where interrupt.thread_key = verify_facts.thread_key
        union all
        select usage.run_no, 'its tokens', to_jsonb(usage)
        from agui.projected_usage as usage
        where usage.thread_key = verify_facts.thread_key
    ),
    found as (
        select told.run_no, told.about, told.fact
        from agui_internal.facts_of_runs(runs) as of_run
        cross join lateral (
            values
                ((of_run.run_fact).run_no, 'the run', to_jsonb(of_run.run_fact)),
                ((of_run.call_fact).run_no, 'its tool calls', to_jsonb(of_run.call_fact)),
                ((of_run.interrupt_fact).run_no, 'its interrupts', to_jsonb(of_run.interrupt_fact) - '{is_open,arguments}'::text[]),
                ((of_run.usage_fact).run_no, 'its tokens', to_jsonb(of_run.usage_fact))
        ) as told (run_no, about, fact)
        where told.run_no is not null
        union all
        select answer.run_no, 'its tool calls', to_jsonb(answer)
        from agui_internal.answers_of_runs(runs) as answer
    ),
    different as (
        select coalesce(stored.run_no, found.run_no) as run_no, coalesce(stored.about, found.about) as about
        from (select * from stored where stored.run_no = any (run_nos)) as stored
        full join found on found.run_no = stored.run_no and found.about = stored.about and found.fact = stored.fact
        where stored.fact is null or found.fact is null
        union
        select stored.run_no, stored.about
        from stored
        where not exists (
            select
            from agui.projected_run as projected
            where projected.thread_key = verify_facts.thread_key and projected.run_no = stored.run_no
        )
        union
        -- agui.waiting would not find it.
        select interrupt.run_no, 'its interrupts'
        from agui.projected_interrupt as interrupt
        where interrupt.thread_key = verify_facts.thread_key and not interrupt.is_open and interrupt.is_call is not true
            -- The job has read how the runs after it ended.
            and not exists (
                select
                from agui.run as later
                left join agui.projected_run as projected
                    on projected.thread_key = later.thread_key and projected.run_no = later.run_no
                where later.thread_key = interrupt.thread_key and later.run_no > interrupt.run_no
                    and projected.changed_in is distinct from later.changed_in
            )
            and agui_internal.may_wait(interrupt)
    )
    select run.run_id, format('the facts about %s are not those of the log: "pgagui job project --rebuild" reads it again', string_agg(different.about, ' and ' order by different.about desc)), 'damage'
    from different
    left join agui.run as run
        on run.thread_key = verify_facts.thread_key and run.run_no = different.run_no
    group by different.run_no, run.run_id
    order by different.run_no;

    if not exists (select from agui_internal.search) then
        return;
    end if;
    -- Which of its runs has a text depends on the order in which they were read.
    return query
    with stored as (
        select said.print, said.run_no, said.text
        from agui.message_text as said
        where said.thread_key = verify_facts.thread_key
    ),
    found as (
        select said.print, said.run_no, said.text
        from agui_internal.texts_of_runs(array(select told from agui_internal.news_of_runs(runs) as told)) as said
    ),
    different as (
        select coalesce(stored.run_no, found.run_no) as run_no
        from stored
        full join found on found.print = stored.print and found.text = stored.text
        where stored.print is null or found.print is null and stored.run_no = any (run_nos)
    )
    select run.run_id, 'the texts of its messages that are searched are not those of the log: "pgagui job project --rebuild" reads it again', 'damage'
    from agui.run as run
    where run.thread_key = verify_facts.thread_key and run.run_no in (select different.run_no from different)
    order by run.run_no;
end
$$;

comment on function agui_internal.verify_facts is
    'The runs of a thread about which agui.projected_run and its like, or agui.message_text, do not say '
    'what the log says.';

create or replace function agui_internal.verify_snapshots(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
security definer
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
-- In a large store the estimates are high, and compiling would take most of the time.
set jit = off
as $$
declare
    run        record;
    -- By run number: the last seq of a run whose lineage is complete, so that it can be folded.
    whole      bigint[] := '{}';
    wrong      int[] := '{}';
    difference text;
    -- the fold of the run folded_no at its end; its messages have the numbers in the snapshots
    fold       agui_internal.fold;
    folded_no  int;
    -- The runs behind it that wait to be folded together: each call looks at all messages so far.
    wait_nos   int[] := '{}';
    after_seqs bigint[];
    through_seqs bigint[];
    is_next    boolean;
begin
    thread_key := agui_internal.visible_key(thread_key);
    -- Ancestors come first. Each snapshot is compared with a fold that continues from that of the
    -- parent, or from a snapshot already proven. In total the whole log is folded from its
    -- beginning, and no part of it twice on one lineage.
    for run in
        select checked.run_id, checked.run_no, checked.parent_no, checked.first_seq, checked.last_seq, checked.status, snapshot.through_seq
        from agui.run as checked
        left join agui.snapshot as snapshot
            on snapshot.thread_key = checked.thread_key and snapshot.run_no = checked.run_no and snapshot.rules = agui_internal.rules()
        where checked.thread_key = verify_snapshots.thread_key
        order by checked.run_no
    loop
        if run.parent_no is null or run.parent_no < run.run_no and whole[run.parent_no] < run.first_seq then
            whole[run.run_no] := case when run.status = 'running' then 9223372036854775807 else run.last_seq end;
        end if;
        is_next := run.parent_no = coalesce(wait_nos[cardinality(wait_nos)], folded_no) and whole[run.run_no] is not null and run.status <> 'running';
        continue when run.through_seq is null and not coalesce(is_next, false);

        difference := null;
        if whole[run.run_no] is null then
            difference := 'the snapshot cannot be compared with the log: the lineage of the run is broken';
        elsif run.through_seq not between run.first_seq and whole[run.run_no] then
            difference := format('the snapshot goes through seq %s, the run from seq %s to seq %s',
                run.through_seq, run.first_seq, coalesce(run.last_seq::text, '(in progress)'));
        else
            begin
                if is_next then
                    wait_nos := wait_nos || run.run_no;
                    after_seqs := after_seqs[: cardinality(wait_nos) - 1] || run.first_seq - 1;
                    through_seqs := through_seqs[: cardinality(wait_nos) - 1] || coalesce(run.through_seq, run.last_seq);
                    continue when run.through_seq is null;
                    fold := agui_internal.fold_runs(fold, thread_key, wait_nos, after_seqs, through_seqs);
                else
                    fold := agui_internal.fold_run(
                        thread_key, run.run_no, run.through_seq,
                        agui_internal.fold_base(thread_key, run.run_no, run.through_seq, wrong || run.run_no)
                    );
                end if;
                folded_no := run.run_no;
                wait_nos := '{}';
                if run.through_seq is not null then
                    fold := agui_internal.fold_patched(fold);
                    difference := 'the snapshot is not what the log says: '
                        || agui_internal.snapshot_difference(thread_key, run.run_no, fold);
                    if difference is null then
                        fold.message_nos := coalesce(
                            agui_internal.snapshot_numbers(thread_key, run.run_no, cardinality(fold.bodies)), fold.message_nos
                        );
                    end if;
                    if run.through_seq < whole[run.run_no] then
                        folded_no := null;  -- the fold lacks the rest of the run
                    end if;
                end if;
            exception
                when others then
                    folded_no := null;
                    wait_nos := '{}';
                    if run.through_seq is not null then
                        difference := 'the snapshot cannot be compared with the log: ' || sqlerrm;
                    end if;
            end;
        end if;
        if difference is not null then
            wrong := wrong || run.run_no;
            return next (run.run_id, difference, 'damage')::agui.verify_row;
        end if;
    end loop;
end
$$;

comment on function agui_internal.verify_snapshots is
    'The snapshots of a thread, by the present rules, that differ from a fold of its raw log, and '
    'the first difference of each.';

create or replace function agui_internal.snapshot_difference(thread_key uuid, run_no int, fold agui_internal.fold)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Other plans have copies of the fold.
set plan_cache_mode = force_generic_plan
as $$
declare
    stored  agui.snapshot;
    numbers int[];
    is_same boolean;
begin
    select snapshot.* into stored
    from agui.snapshot as snapshot
    where snapshot.thread_key = snapshot_difference.thread_key and snapshot.run_no = snapshot_difference.run_no;
    numbers := agui_internal.snapshot_numbers(thread_key, run_no, cardinality(fold.bodies));

    if numbers is null then
        is_same := false;
    elsif numbers = fold.message_nos then
        is_same := true;
    else
        with place as materialized (
            select pair.position, pair.number, pair.fold_number
            from unnest(numbers, fold.message_nos) with ordinality as pair (number, fold_number, position)
        ),
        -- Only what may differ: compare its body.
        changed as materialized (
            select place.position, place.number, place.fold_number
            from place
            where place.fold_number is distinct from place.number
        ),
        -- A message at several places is one in both.
        related as (
            select
                place.position,
                min(place.position) over (partition by place.number) as first_stored,
                case
                    when place.fold_number is null then place.position
                    else min(place.position) over (partition by place.fold_number)
                end as first_folded
            from place
            where place.number in (select changed.number from changed)
                or place.fold_number in (select changed.fold_number from changed)
        )
        select
            not exists (
                select
                from changed
                -- One look-up each: few have changed.
                cross join lateral (
                    select (
                        select message.body::text
                        from agui.message as message
                        where message.thread_key = snapshot_difference.thread_key and message.message_no = changed.number
                    )
                ) as message (body)
                where message.body is null
                    or message.body <> fold.bodies[changed.position]
                        and not agui_internal.json_equal(message.body, fold.bodies[changed.position])
            )
            and not exists (select from related where related.first_stored <> related.first_folded)
        into is_same;
    end if;
    if is_same
        and agui_internal.json_equal(stored.state::text, fold.state)
        and agui_internal.json_equal(stored.interrupts::text, fold.interrupts)
        and agui_internal.json_equal(coalesce(stored.lanes::text, '[]'), coalesce(fold.lanes, '[]'))
    then
        return null;
    end if;
    return agui_internal.fold_difference(agui_internal.load_snapshot(thread_key, run_no), fold);
end
$$;

comment on function agui_internal.snapshot_difference is
    'The first difference between the snapshot of a run and a fold; null: they are equal. Messages '
    'with the same number in both are not read: the fold has them from a snapshot that was '
    'compared before.';

create or replace function agui_internal.snapshot_numbers(thread_key uuid, run_no int, expected int)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Damaged ranges may have any length.
    if (
        select coalesce(sum(upper(part.message_nos)::bigint - lower(part.message_nos)), 0)
        from agui.snapshot as snapshot
        cross join unnest(snapshot.message_nos) as part (message_nos)
        where snapshot.thread_key = snapshot_numbers.thread_key and snapshot.run_no = snapshot_numbers.run_no
    ) <> expected
        or exists (
            select
            from agui.snapshot as snapshot
            cross join unnest(snapshot.message_nos) as part (message_nos)
            where snapshot.thread_key = snapshot_numbers.thread_key
                and snapshot.run_no = snapshot_numbers.run_no
                and (lower_inf(part.message_nos) or upper_inf(part.message_nos))
        )
    then
        return null;
    end if;
    return array(
        select numbers.number
        from agui.snapshot as snapshot
        cross join unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        cross join generate_series(lower(part.message_nos), upper(part.message_nos) - 1) as numbers (number)
        where snapshot.thread_key = snapshot_numbers.thread_key and snapshot.run_no = snapshot_numbers.run_no
        order by part.position, numbers.number
    );
end
$$;

comment on function agui_internal.snapshot_numbers is
    'The message versions of a snapshot, in order; null if their number differs from the expected '
    'one.';
