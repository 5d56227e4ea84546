-- Inputs of runs become parts that are stored once. Clients send the whole conversation with each
-- run, so whole inputs would grow with the square of a thread. Compaction first splits those of 4
-- KB or more (split_inputs), in at most half of its time.
--
--    run_input.skeleton   the text around the parts
--    run_input.sections   the numbers of the parts, by kind: a history that grows is one range
--    input_part           each message, member of the state, tools and context once a thread, found
--                         by a short hash (print) and compared
--
-- agui_internal.joined_input puts the text together, and the view agui.input gives it, whether the
-- row is whole or in parts. All readers of the text use the view.
--
-- - A step splits up to 4 MB or 100 inputs of one thread, under the row of the thread, so appends
--   do not wait. It reads each text back, byte for byte, before it commits.
-- - An input that would not come back, one without parts, and one of more than 16 MB stays whole. A
--   member stays in the skeleton if its elements, joined by `,` or `, `, are not its text.
-- - Messages that an input has in common with the one before it are compared, not parsed
--   (known_messages), so a turn costs in proportion to what is new.
-- - An input of 16 KB or more whose first messages are parts already refers to them from its append
--   on (agui_internal.store_input): its only section has the kind `beginning`, and the rest of the
--   text is its skeleton. Folds leave out known messages; other readers take the whole text.
--   A step splits it as it splits a whole one.
-- - Parts never change, go with their thread, and are never derived from snapshots, which can be
--   deleted. A message of a snapshot and a part with the same text are stored once; either may come
--   first (part_of_message, store_input_parts).
-- - The queue is run_input.split_at. The inputs of runs then count with the parts that came with
--   them (run.log_bytes), and snapshots that this does not pay for are dropped.
-- - Below 4 KB, in a thread of two runs, the rows of the parts take as much as they save.
--
-- `go test ./jobs -run GrowingHistory -v` shows sizes.

-- role: worker
create or replace procedure agui_internal.split_inputs(max_time interval default null)
language plpgsql
-- A procedure with a SET clause cannot commit. So each transaction sets the path before it resolves
-- any name.
as $$
declare
    stop_at pg_catalog.timestamptz;
    next    pg_catalog.record;  -- the next inputs, of which notes are committed
    busy    pg_catalog.uuid[] := '{}';
begin
    set local search_path = pg_catalog, pg_temp;
    if not exists (select from agui.run_input where split_at is null) then
        return;  -- as usual
    end if;
    stop_at := agui_internal.stop_time(pg_catalog.clock_timestamp() + max_time);
    select null::uuid as thread_key, null::int[] as run_nos into next;
    loop
        if not pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id('split')) then
            -- the same job is in progress elsewhere
            perform agui_internal.take_back_attempt('split', next.thread_key, next.run_nos);
            exit;
        end if;
        perform agui_internal.begin_step();
        if next.thread_key is not null then
            begin
                if agui_internal.split_thread_inputs(next.thread_key, next.run_nos) then
                    perform agui_internal.note_success('split', next.thread_key, next.run_nos);
                else
                    perform agui_internal.take_back_attempt('split', next.thread_key, next.run_nos);
                    busy := busy || next.thread_key;
                end if;
            exception
                when others then
                    raise warning 'the inputs of the thread with key %, run numbers %, stay whole for now: %', next.thread_key, next.run_nos, sqlerrm;
                    if not agui_internal.note_failure('split', next.thread_key, sqlstate, sqlerrm, next.run_nos) then
                        busy := busy || next.thread_key;
                    end if;
            end;
            exit when pg_catalog.clock_timestamp() >= stop_at;
        end if;
        select * into next from agui_internal.next_to_split(busy);
        exit when next.thread_key is null;
        perform agui_internal.note_attempt('split', next.thread_key, next.run_nos);
        commit;
        set local search_path = pg_catalog, pg_temp;
    end loop;
    commit;
end
$$;

comment on procedure agui_internal.split_inputs is
    'Stores inputs in parts, those of a thread in a step, and commits after each step. Stops after '
    'max_time (null: no limit), or in time before statement_timeout; one step is always done. '
    'Inputs that fail are listed in agui.quarantine and retried with backoff. Does nothing while '
    'another call is in progress. Call it outside a transaction block.';

-- role: worker
create or replace function agui_internal.split_thread_inputs(thread_key uuid, run_nos int[])
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run record;
begin
    perform agui_internal.own_key(thread_key);
    if not agui_internal.hold_thread(thread_key) then
        return false;
    end if;
    for run in
        select processed.run_no, processed.last_seq, processed.log_bytes is not null as is_compacted
        from unnest(run_nos) as requested (run_no)
        join agui.run as processed
            on processed.thread_key = split_thread_inputs.thread_key and processed.run_no = requested.run_no
        order by processed.run_no
    loop
        perform agui_internal.split_input(thread_key, run.run_no);
        if run.is_compacted then
            -- The log is smaller now, and may not pay for the snapshot any more.
            update agui.run as compacted
            set log_bytes = (agui_internal.run_size(split_thread_inputs.thread_key, run.run_no, run.last_seq)).log_bytes
            where compacted.thread_key = split_thread_inputs.thread_key and compacted.run_no = run.run_no and compacted.log_bytes is not null;
            if agui_internal.previous_tip(thread_key) is distinct from run.run_no
                and exists (
                    select
                    from agui.snapshot as snapshot
                    where snapshot.thread_key = split_thread_inputs.thread_key and snapshot.run_no = run.run_no
                )
            then
                perform agui_internal.drop_needless_snapshot(thread_key, run.run_no);
            end if;
        end if;
    end loop;
    return true;
end
$$;

comment on function agui_internal.split_thread_inputs is
    'Stores the inputs of runs of a thread in parts, where that gives the same text, and drops '
    'snapshots that the smaller log does not pay for. False: another transaction holds the thread, or '
    'it is gone.';

create or replace function agui_internal.split_input(thread_key uuid, run_no int)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A smaller value stays in the skeleton: the row of a part takes about as much.
    least_value constant int := 256;
    -- To parse takes about 22 bytes of memory for one of the text. If there is more, the input stays
    -- whole.
    most_bytes constant int := 16 * 1024 * 1024;
    body    bytea;
    known   record;  -- the messages that need not be parsed
    unknown bytea;   -- the text without known messages
    rest    text;    -- of that: what follows the last section
    member  record;
    split   record;
    stored  record;
    at      int;
    pieces    text[] := '{}';
    joints    jsonb := '[]';  -- the sections
    new_bytes bigint := 0;
begin
    select convert_to(coalesce(given.input::text, agui_internal.joined_input(given.thread_key, given.skeleton, given.sections)), 'UTF8') into body
    from agui.run_input as given
    where given.thread_key = split_input.thread_key and given.run_no = split_input.run_no and given.split_at is null;

    begin
        if octet_length(body) >= agui_internal.least_input_to_split() then
            select * into known from agui_internal.known_messages(thread_key, run_no, body);
            unknown := case
                when known.part_nos is null then body
                else overlay(body placing '' from known.first_at for known.rest_at - known.first_at)
            end;
        end if;
        if octet_length(unknown) <= most_bytes then
            rest := agui_internal.json_guard(convert_from(unknown, 'UTF8'));
            for member in
                select
                    case of_input.key when 'messages' then 'message' else of_input.key end as kind,
                    of_input.value
                from (
                    select *, count(*) over (partition by given.key) as times
                    from json_each(rest::json) with ordinality as given (key, value, place)
                ) as of_input
                where of_input.times = 1  -- readers take the last of several
                    and of_input.key in ('messages', 'state', 'tools', 'context')
                    and (
                        octet_length(of_input.value::text) >= least_value
                        or of_input.key = 'messages' and known.part_nos is not null
                    )
                order by of_input.place
            loop
                select * into split from agui_internal.input_parts_of(member.kind, member.value);
                continue when split.bodies is null;
                at := case
                    -- The known messages stood here.
                    when member.kind = 'message' and known.part_nos is not null
                        then length(rest) - length(agui_internal.json_guard(convert_from(substring(unknown from known.first_at - 1), 'UTF8'))) + 1
                    -- The text around the values stays as it is, so nothing is lost by where they are found.
                    else strpos(rest, member.value::text)
                end;
                continue when at = 0;
                select * into stored from agui_internal.store_input_parts(thread_key, member.kind, split.bodies);
                if member.kind = 'message' and known.part_nos is not null then
                    stored.part_nos := known.part_nos || stored.part_nos;
                    split.separator := known.separator;
                end if;
                new_bytes := new_bytes + stored.bytes;
                joints := joints || jsonb_build_object(
                    'kind', member.kind, 'separator', split.separator, 'part_nos', agui_internal.ranges_of(stored.part_nos)
                );
                pieces := pieces || agui_internal.json_unguard(
                    left(rest, at - 1) || case member.kind when 'message' then '[' when 'state' then '{' else '' end
                );
                rest := case member.kind when 'message' then ']' when 'state' then '}' else '' end
                    || substr(rest, at + length(member.value::text));
            end loop;
            pieces := pieces || agui_internal.json_unguard(rest);
        end if;
        if joints <> '[]' then
            -- From now on readers must get exactly what they got before.
            if convert_to(agui_internal.joined_input(thread_key, pieces, joints), 'UTF8') is distinct from body then
                raise data_corrupted;
            end if;
            perform agui_internal.allow_log_change(true);
            update agui.run_input as given
            set input = null,
                hash = sha256(body),
                bytes = octet_length(body),
                skeleton = pieces,
                sections = joints,
                part_bytes = new_bytes,
                split_at = clock_timestamp()
            where given.thread_key = split_input.thread_key and given.run_no = split_input.run_no;
            perform agui_internal.allow_log_change(false);
            return;
        end if;
    exception
        when data_corrupted then
            null;  -- nothing of it is stored
    end;

    perform agui_internal.allow_log_change(true);
    update agui.run_input as given
    set input = coalesce(given.input, convert_from(body, 'UTF8')::json), skeleton = null, sections = null, part_bytes = null, split_at = clock_timestamp()
    where given.thread_key = split_input.thread_key and given.run_no = split_input.run_no and given.split_at is null;
    perform agui_internal.allow_log_change(false);
end
$$;

comment on function agui_internal.split_input is
    'Stores the input of a run in parts, reads it back, and keeps it whole unless the text is the same, '
    'byte for byte. The caller holds the row of the thread.';

create or replace function agui_internal.input_parts_of(
    kind  text,
    value json,
    out bodies    text[],
    out separator text
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if kind in ('tools', 'context') then
        bodies := array[value::text];
        separator := '';
        return;
    end if;
    -- JSON.stringify writes no white space, Python's json.dumps a space behind commas and colons.
    foreach separator in array array[',', ', '] loop
        if kind = 'message' and json_typeof(value) = 'array' then
            bodies := array(
                select element.body::text
                from json_array_elements(value) with ordinality as element (body, place)
                order by element.place
            );
            if '[' || array_to_string(bodies, separator) || ']' = value::text then
                return;
            end if;
        elsif kind = 'state' and json_typeof(value) = 'object' then
            bodies := array(
                select to_json(member.key) || case separator when ',' then ':' else ': ' end || member.body
                from json_each(value) with ordinality as member (key, body, place)
                order by member.place
            );
            if '{' || array_to_string(bodies, separator) || '}' = value::text then
                bodies := array(
                    select '{' || member.body || '}'
                    from unnest(bodies) with ordinality as member (body, place)
                    order by member.place
                );
                return;
            end if;
        end if;
    end loop;
    bodies := null;
end
$$;

comment on function agui_internal.input_parts_of is
    'The bodies of the parts (agui.input_part) of a member of an input in guarded JSON, and what stands '
    'between them. Null: it stays in the skeleton, because the parts would not give the same text.';

create or replace function agui_internal.store_input_parts(
    thread_key uuid,
    kind       text,
    guarded    text[],
    out part_nos int[],
    out bytes    bigint
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bodies constant text[] := array(
        select agui_internal.json_unguard(element.body)
        from unnest(guarded) with ordinality as element (body, place)
        order by element.place
    );
    -- So that long threads cost no more. What is older stays as it is, until snapshots are rebuilt.
    newest_messages constant int := 1000;
    beginning constant bytea := uuid_send(thread_key) || convert_to(kind, 'UTF8');
    last_no constant int := (
        select coalesce(max(part.part_no), 0)
        from agui.input_part as part
        where part.thread_key = store_input_parts.thread_key and part.kind = store_input_parts.kind
    );
begin
    loop
        part_nos := array(
            select agui_internal.known_part(thread_key, kind, element.body)
            from unnest(bodies) with ordinality as element (body, place)
            order by element.place
        );
        exit when array_position(part_nos, null) is null;
        insert into agui.input_part (thread_key, kind, part_no, print, bytes, message_id, body)
        select
            store_input_parts.thread_key, store_input_parts.kind, last_no + row_number() over (order by added.place), added.print,
            octet_length(added.guarded), agui_internal.message_id_of(store_input_parts.kind, added.guarded),
            added.body::json
        from (
            select distinct on (element.print, element.body collate "C") element.*
            from (
                select listed.place, agui_internal.part_print(beginning, listed.body) as print, listed.body, listed.guarded
                from rows from (unnest(bodies), unnest(guarded), unnest(part_nos)) with ordinality as listed (body, guarded, part_no, place)
                where listed.part_no is null
            ) as element
            order by element.print, element.body collate "C", element.place
        ) as added;
    end loop;
    if kind = 'message' then
        -- What an agent said comes back with the next input: from now on it is stored once.
        update agui.message_version as version
        set body = null, part_no = part.part_no
        from agui.input_part as part
        where part.thread_key = store_input_parts.thread_key and part.kind = 'message' and part.part_no > last_no
            and version.thread_key = store_input_parts.thread_key
            and version.message_no > (
                select max(newest.message_no) - newest_messages
                from agui.message_version as newest
                where newest.thread_key = store_input_parts.thread_key
            )
            and version.message_id = part.message_id
            and version.body::text = part.body::text;
    end if;
    bytes := (
        select coalesce(sum(pg_column_size(part.body) + 70), 0)
        from agui.input_part as part
        where part.thread_key = store_input_parts.thread_key and part.kind = store_input_parts.kind and part.part_no > last_no
    );
end
$$;

comment on function agui_internal.store_input_parts is
    'Stores the parts of an input that its thread does not have yet, given in guarded JSON. Returns the '
    'numbers of all, in order, and the stored size of the new ones in bytes. Messages of snapshots that '
    'are the same as a new one point to it. The caller holds the row of the thread.';

create or replace function agui_internal.next_to_split(
    passed_over uuid[],
    out thread_key uuid,
    out run_nos    int[]
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    own record;
begin
    select * into own from agui_internal.own_keys();
    select given.thread_key into next_to_split.thread_key
    from agui.run_input as given
    where given.split_at is null
        and given.thread_key >= own.low and given.thread_key <= own.high
        and given.thread_key <> all (passed_over)
        and not exists (
            select
            from agui_internal.job_note as note
            where note.job = 'split' and note.thread_key = given.thread_key and note.run_no = given.run_no
        )
    order by given.thread_key, given.run_no
    limit 1;
    if found then
        run_nos := agui_internal.inputs_to_split(thread_key);
        return;
    end if;
    -- Last, one of an earlier attempt that did not succeed.
    select note.thread_key, array[note.run_no]
    into next_to_split.thread_key, run_nos
    from agui_internal.job_note as note
    join agui.run_input as given
        on given.thread_key = note.thread_key and given.run_no = note.run_no
    where note.job = 'split' and (note.next_at is null or note.next_at <= clock_timestamp())
        and given.split_at is null
        and note.thread_key <> all (passed_over)
        and note.thread_key >= own.low and note.thread_key <= own.high
    order by note.attempts, note.noted_at
    limit 1;
end
$$;

comment on function agui_internal.next_to_split is
    'The next inputs to store in parts: of one thread, up to 100 with about 4 MB of text, at least one. '
    'Those of a failed attempt come last, one by one. Only in scopes of the role. Nulls: there are none.';

create or replace function agui_internal.inputs_to_split(thread_key uuid)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Of a step, which is a transaction: some hundred milliseconds.
    max_bytes  constant int := 4 * 1024 * 1024;
    max_inputs constant int := 100;
begin
    return (
        select array_agg(input.run_no order by input.run_no)
        from (
            select waiting.run_no, sum(waiting.bytes) over (order by waiting.run_no) - waiting.bytes as bytes_before
            from (
                select given.run_no, coalesce(given.bytes, agui_internal.text_bytes(given.input)) as bytes
                from agui.run_input as given
                where given.split_at is null
                    and given.thread_key = inputs_to_split.thread_key
                    and not exists (
                        select
                        from agui_internal.job_note as note
                        where note.job = 'split' and note.thread_key = given.thread_key and note.run_no = given.run_no
                    )
                order by given.run_no
                limit max_inputs
            ) as waiting
        ) as input
        where input.bytes_before < max_bytes
    );
end
$$;

comment on function agui_internal.inputs_to_split is
    'The runs of a thread whose inputs are stored in parts next: up to 100 with about 4 MB of text, at '
    'least one, without those of a failed attempt. Null: there are none.';
