create or replace function agui_internal.input_places(thread_key uuid, run_nos int[], through_seqs bigint[])
returns setof agui_internal.input_place
language plpgsql
stable
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    run      record;
    start    record;
begin
    for run in
        select begun.run_no, begun.first_seq, requested.through_seq
        from unnest(run_nos, through_seqs) as requested (run_no, through_seq)
        -- One look-up in an index for each: a join might read all runs of the thread.
        cross join lateral (
            select given.run_no
            from agui.run_input as given
            where given.thread_key = input_places.thread_key and given.run_no = requested.run_no
            limit 1
        ) as given
        cross join lateral (
            select of_input.run_no, of_input.first_seq
            from agui.run as of_input
            where of_input.thread_key = input_places.thread_key and of_input.run_no = given.run_no
            limit 1
        ) as begun
        order by begun.run_no
    loop
        -- It is usually in the first batch, and then no other batch is read.
        select batch.first_seq + element.position - 1 as seq, json_typeof(element.input) is not distinct from 'object' as has_input
        into start
        from agui.batch as batch
        cross join lateral (
            select event.position, event.input
            from rows from (
                json_to_recordset(agui_internal.json_guarded(batch.events)) as (type text, input json)
            ) with ordinality as event (type, input, position)
            where event.type = 'RUN_STARTED' and batch.first_seq + event.position - 1 <= run.through_seq
            order by event.position
            limit 1
        ) as element
        where batch.thread_key = input_places.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.through_seq
            -- Skip batches that cannot contain it. A type written with escapes has \u00 in it.
            and (strpos(batch.events::text, 'RUN_STARTED') > 0 or strpos(batch.events::text, '\u00') > 0)
        order by batch.first_seq
        limit 1;
        if start.seq is null then
            return next (run.run_no, run.first_seq, false)::agui_internal.input_place;
        elsif not start.has_input then
            return next (run.run_no, start.seq, true)::agui_internal.input_place;
        end if;
    end loop;
end
$$;

comment on function agui_internal.input_places is
    'Where the inputs stored beside the events of runs take effect, given the seqs up to which '
    'their logs are read. Returns no row for a run that has none, or whose first RUN_STARTED '
    'carries an input, which alone counts.';

create or replace function agui_internal.known_part(thread_key uuid, kind text, body text)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select part.part_no
        -- The offset keeps the other conditions from the choice of the index.
        from (
            select *
            from agui.input_part as part
            where part.print = agui_internal.part_print(
                uuid_send(known_part.thread_key) || convert_to(known_part.kind, 'UTF8'), known_part.body
            )
            offset 0
        ) as part
        where part.thread_key = known_part.thread_key
            and part.kind = known_part.kind
            and part.body::text = known_part.body
        limit 1
    );
end
$$;

comment on function agui_internal.known_part is
    'The number of the part of the inputs of a thread (agui.input_part) with this text, byte for byte; '
    'null: there is none.';

-- It is inlined.
create or replace function agui_internal.part_print(beginning bytea, body text)
returns bigint
language sql
stable
parallel safe
return ('x' || encode(substring(sha256(beginning || convert_to(body, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

comment on function agui_internal.part_print is
    'The first 64 bits of sha256 of a text with a beginning, by which an equal text is found. The '
    'beginning names the thread and the place. So equal texts of other threads have other prints, and '
    'none is common to many rows.';

create or replace function agui_internal.least_input_to_split()
returns int
language sql
immutable
parallel safe
return 4096;

comment on function agui_internal.least_input_to_split is
    'The size in bytes of the text of an input from which on it is stored in parts. The rows of the '
    'parts of a smaller one would take as much as they save.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.message_id_of(kind text, guarded text)
returns text
language sql
immutable
parallel safe
return case
    when kind = 'message' and left(guarded, 1) = '{' then agui_internal.json_string_text((guarded::json -> 'id')::text)
end;

comment on function agui_internal.message_id_of is
    'The id of a part of an input (guarded JSON), as folds decode it; null if it is no message, or has '
    'no id.';

create or replace function agui_internal.new_input(
    thread_key uuid,
    run_no     int,
    known_ids  text[],
    inout listed       bytea,
    inout listed_bytes bigint,
    out input          json,
    out left_out_bytes bigint,
    out new_ids        text[]
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off  -- the ids are looked up in a hash table
set jit = off
as $$
declare
    role     constant bytea := convert_to('"role"', 'UTF8');
    stored   record;
    parts    record;   -- the messages in parts
    has_more boolean;  -- whether others follow them in the skeleton
    body     bytea;    -- the text of a whole input
    until    int;      -- the end of the listed messages in it
    head     text;     -- what stands before them
    tail     text;     -- what stands behind them
    messages text;     -- those that are not listed, guarded
begin
    select of_run.input, of_run.skeleton, of_run.sections, section.kind, section.separator, section.part_nos into stored
    from agui.run_input as of_run
    left join lateral jsonb_to_recordset(of_run.sections) as section (kind text, separator text, part_nos int4range[])
        on section.kind in ('message', 'beginning')
    where of_run.thread_key = new_input.thread_key and of_run.run_no = new_input.run_no;
    if stored.part_nos is null then
        input := coalesce(stored.input, agui_internal.joined_input(thread_key, stored.skeleton, stored.sections)::json);
        body := convert_to(input::text, 'UTF8');
        if octet_length(body) < agui_internal.least_input_to_split() then
            return;
        end if;
        until := agui_internal.behind_messages(body, listed);
        if substring(body from until for 1) in (',', ']') then
            head := convert_from(substring(body for until - octet_length(listed) - 1), 'UTF8');
            tail := convert_from(substring(body from until), 'UTF8');
            messages := (agui_internal.json_guarded((head || '0' || tail)::json) -> 'messages')::text;
            -- It could be a list elsewhere in the input.
            if messages ^@ '[0' and (agui_internal.json_guarded((head || '1' || tail)::json) -> 'messages')::text ^@ '[1' then
                input := (head || ltrim(left(tail, 1), ',') || substr(tail, 2))::json;
                left_out_bytes := listed_bytes + case when tail ^@ ',' then 1 else 0 end;
                messages := substr(messages, 3, length(messages) - 3);
            end if;
        end if;
        if left_out_bytes is null then
            listed := null;
            listed_bytes := 0;
            messages := null;
            -- One message is not a conversation, but it may be large.
            if position(role in substring(body from position(role in body) + 1)) > 0 then
                messages := (agui_internal.json_guarded(input) -> 'messages')::text;
                messages := case when messages ^@ '[' then substr(messages, 2, length(messages) - 2) end;
            end if;
        end if;
        if messages <> '' and not exists (
            select
            from json_array_elements(('[' || ltrim(messages, ',') || ']')::json) as message
            where (strpos(agui_internal.json_string_text((message -> 'id')::text), '\') = 0) is not true
        ) then
            listed := coalesce(listed, '') || convert_to(agui_internal.json_unguard(messages), 'UTF8');
            listed_bytes := listed_bytes + octet_length(messages);
        end if;
        return;
    end if;
    has_more := stored.kind = 'beginning' and stored.skeleton[2] ^@ stored.separator;
    select
        array_agg(part.part_no order by part.place, part.part_no) filter (where known.id is null) as new_nos,
        array_agg(part.message_id) filter (where known.id is null and part.message_id is not null) as new_ids,
        count(*) filter (where known.id is null) as new_n,
        count(*) as n,
        coalesce(sum(part.bytes) filter (where known.id is not null), 0) as left_out_bytes
    into parts
    from agui_internal.parts_in(thread_key, 'message', stored.part_nos) as part
    -- Guarded text with a backslash is ambiguous.
    left join (select distinct given.id from unnest(known_ids) as given (id) where strpos(given.id, '\') = 0) as known
        on known.id = part.message_id;
    new_ids := parts.new_ids;
    left_out_bytes := parts.left_out_bytes
        + (parts.n - parts.new_n - case when parts.new_n = 0 and not has_more then 1 else 0 end) * octet_length(stored.separator);
    if has_more and parts.new_n = 0 then
        stored.skeleton[2] := substr(stored.skeleton[2], length(stored.separator) + 1);
    end if;
    input := agui_internal.joined_input(
        thread_key, stored.skeleton, agui_internal.with_messages(stored.sections, agui_internal.ranges_of(parts.new_nos))
    )::json;
end
$$;

comment on function agui_internal.new_input is
    'What a fold takes from the input beside the events of a run: the input without the messages that '
    'the conversation has, because it ignores them. Those in parts are known by their ids (known_ids). '
    'Those of a whole input are known by their text: listed is that of the messages of an earlier one, '
    'all with ids, and listed_bytes its size as folds count it; they become those of this input. '
    'left_out_bytes is the size of what is left out, as folds count it, with what separates it; new_ids '
    'are the ids of the others that are in parts.';

create or replace function agui_internal.behind_messages(input bytea, beginning bytea)
returns int
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    opening bytea;
    at      int;
begin
    foreach opening in array array[convert_to('"messages":[', 'UTF8'), convert_to('"messages": [', 'UTF8')] loop
        at := position(opening || beginning in input);
        if at > 0 then
            return at + octet_length(opening) + octet_length(beginning);
        end if;
    end loop;
    return null;
end
$$;

comment on function agui_internal.behind_messages is
    'The place in bytes, from 1, behind the beginning of a list of messages in an input in UTF-8: the '
    'first list that begins so, with or without a space before its bracket. Null: there is none.';

create or replace function agui_internal.with_messages(sections jsonb, part_nos int4range[])
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select jsonb_agg(
            case
                when section.value ->> 'kind' in ('message', 'beginning')
                    then section.value || jsonb_build_object('part_nos', coalesce(to_jsonb(part_nos), '[]'))
                else section.value
            end
            order by section.place
        )
        from jsonb_array_elements(sections) with ordinality as section (value, place)
    );
end
$$;

comment on function agui_internal.with_messages is
    'Sections of an input in parts, with other messages (null: none).';

create or replace function agui_internal.ranges_of(numbers int[])
returns int4range[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    number   int;
    first_no int;  -- of the current range
    next_no  int;  -- what would continue it
    ranges   int4range[];
begin
    foreach number in array coalesce(numbers, '{}') loop
        if number is distinct from next_no then
            if first_no is not null then
                ranges := ranges || int4range(first_no, next_no);
            end if;
            first_no := number;
        end if;
        next_no := number + 1;
    end loop;
    return case when first_no is not null then ranges || int4range(first_no, next_no) end;
end
$$;

comment on function agui_internal.ranges_of is
    'Numbers in their order, as ranges of numbers that follow each other. Null: there are none.';

create or replace function agui_internal.store_input(thread_key uuid, run_no int, input json, body bytea, stored_at timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    -- To compare less costs more than to write it.
    least_to_share constant int := 16 * 1024;
    known     record;
    is_shared boolean;
begin
    if octet_length(body) >= least_to_share then
        select * into known from agui_internal.known_messages(thread_key, run_no, body);
        is_shared := known.part_nos is not null and known.until - known.first_at >= agui_internal.least_input_to_split();
    end if;
    if is_shared then
        insert into agui.run_input (thread_key, run_no, hash, bytes, skeleton, sections, part_bytes)
        values (
            thread_key, run_no, sha256(body), octet_length(body),
            array[convert_from(substring(body for known.first_at - 1), 'UTF8'), convert_from(substring(body from known.until), 'UTF8')],
            jsonb_build_array(jsonb_build_object('kind', 'beginning', 'separator', known.separator, 'part_nos', agui_internal.ranges_of(known.part_nos))),
            0
        );
    else
        insert into agui.run_input (thread_key, run_no, input, hash, bytes, split_at)
        values (
            thread_key, run_no, input, sha256(body), octet_length(body),
            case when octet_length(body) < agui_internal.least_input_to_split() then stored_at end
        );
    end if;
end
$$;

comment on function agui_internal.store_input is
    'Stores the input beside the events of a run that begins, given its text in UTF-8 too. If it '
    'begins with messages of an input in parts before it, byte for byte, the row refers to their parts. '
    'The rest is split later (agui_internal.split_inputs).';

create or replace function agui_internal.stored_input_hash(thread_key uuid, run_no int)
returns bytea
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select sha256(convert_to(
            coalesce(stored.input::text, agui_internal.joined_input(stored.thread_key, stored.skeleton, stored.sections, false)),
            'UTF8'
        ))
        from agui.run_input as stored
        where stored.thread_key = stored_input_hash.thread_key and stored.run_no = stored_input_hash.run_no
    );
end
$$;

comment on function agui_internal.stored_input_hash is
    'sha256 of the text of the input beside the events of a run, computed from what is stored, for '
    'checks. Parts that are missing are left out. Null: the run has no input, or its row has no text.';

create or replace function agui_internal.joined_input(
    thread_key uuid,
    skeleton   text[],
    sections   jsonb,
    is_checked boolean default true
)
returns text
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    section record;
    joined  record;
    result  text := skeleton[1];
begin
    for section in
        select listed.*
        from rows from (jsonb_to_recordset(sections) as (kind text, separator text, part_nos int4range[])) with ordinality
            as listed (kind, separator, part_nos, place)
        order by listed.place
    loop
        select
            -- They come in order. To sort them once more takes three times as long as to join them.
            string_agg(
                -- A member of the state is stored as an object.
                case when section.kind = 'state' then substr(part.body::text, 2, length(part.body::text) - 2) else part.body::text end,
                section.separator
            ) as text,
            count(*) as n,
            (select sum(upper(range.part_nos) - lower(range.part_nos)) from unnest(section.part_nos) as range (part_nos)) as listed_n
        into joined
        from agui_internal.parts_in(thread_key, section.kind, section.part_nos) as part;
        if is_checked and joined.n <> joined.listed_n then
            raise exception using
                errcode = 'data_corrupted',
                message = format('an input of the thread with key %s lacks %s parts of the kind %s', thread_key, joined.listed_n - joined.n, section.kind),
                hint = 'agui.verify names all that is wrong with the thread.';
        end if;
        result := result || coalesce(joined.text, '') || skeleton[section.place + 1];
    end loop;
    return result;
end
$$;

comment on function agui_internal.joined_input is
    'The text of an input that is stored in parts, byte for byte, given the columns of its row. XX001: '
    'a part is missing, unless is_checked is false.';

-- It is inlined.
create or replace function agui_internal.parts_in(thread_key uuid, kind text, part_nos int4range[])
returns table (place bigint, part_no int, bytes int, message_id text, body json)
language sql
stable
parallel safe
begin atomic
    select range.place, part.part_no, part.bytes, part.message_id, part.body
    from unnest(part_nos) with ordinality as range (part_nos, place)
    -- The offset makes this one range of the index for each range of numbers, read in its order.
    cross join lateral (
        select stored.part_no, stored.bytes, stored.message_id, stored.body
        from agui.input_part as stored
        where stored.thread_key = parts_in.thread_key
            and stored.kind = case parts_in.kind when 'beginning' then 'message' else parts_in.kind end
            and stored.part_no >= lower(range.part_nos) and stored.part_no < upper(range.part_nos)
        order by stored.part_no
        offset 0
    ) as part;
end;

comment on function agui_internal.parts_in is
    'The parts of a section of an input (run_input.sections), in their order: that of place, the number '
    'of their range, and then of part_no. Parts that are missing are left out.';

create or replace function agui_internal.known_messages(
    thread_key uuid,
    run_no     int,
    input      bytea,
    out part_nos  int[],
    out separator text,
    out first_at  int,
    out until     int,
    out rest_at   int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    -- Those that wait to be split stand between.
    most_inputs constant int := 16;
    sections jsonb;
    listed   int4range[];  -- the messages of the input before
    first    bytea;
    part     record;  -- a message of the input before
    joined   bytea;   -- with what stands before it
begin
    select stored.sections into sections
    from (
        select *
        from agui.run_input as earlier
        where earlier.thread_key = known_messages.thread_key and earlier.run_no < known_messages.run_no
        order by earlier.run_no desc
        limit most_inputs
    ) as stored
    where stored.sections @> '[{"kind": "message"}]'
    order by stored.run_no desc
    limit 1;
    if sections is null then
        return;
    end if;
    first_at := agui_internal.behind_messages(input, '');
    if first_at is null then
        return;
    end if;
    -- It must be the list of the input: what stands before it, closed, is an object that ends with it.
    begin
        if (
            select array_agg(member.key order by member.place) filter (where member.key = 'messages' or member.is_last)
                is distinct from array['messages']
            from (
                select member.key, member.place, member.place = max(member.place) over () as is_last
                from json_object_keys(
                    (agui_internal.json_guard(convert_from(substring(known_messages.input for first_at - 1), 'UTF8')) || ']}')::json
                ) with ordinality as member (key, place)
            ) as member
        ) then
            return;
        end if;
    exception
        when invalid_text_representation then
            return;
    end;

    listed := array(
        select range.part_nos
        from jsonb_to_recordset(sections) as section (kind text, part_nos int4range[])
        cross join unnest(section.part_nos) with ordinality as range (part_nos, place)
        where section.kind = 'message'
        order by range.place
    );
    -- A history that grows begins with all of them.
    select convert_to(part_of.body::text, 'UTF8') into first
    from agui_internal.parts_in(known_messages.thread_key, 'message', listed) as part_of
    limit 1;
    separator := case when substring(known_messages.input from first_at + octet_length(first) for 2) = ', ' then ', ' else ',' end;
    select array_agg(part_of.part_no), convert_to(string_agg(part_of.body::text, separator), 'UTF8') into part_nos, joined
    from agui_internal.parts_in(known_messages.thread_key, 'message', listed) as part_of;
    until := first_at + octet_length(joined);
    if substring(known_messages.input from first_at for octet_length(joined)) is distinct from joined then
        -- A window that slides begins with a later message of the input before.
        part_nos := null;
        separator := null;
        until := first_at;
        for part in
            select part_of.part_no, convert_to(part_of.body::text, 'UTF8') as body
            from agui_internal.parts_in(known_messages.thread_key, 'message', listed) as part_of
        loop
            joined := case when part_nos is null then part.body else convert_to(separator, 'UTF8') || part.body end;
            if substring(known_messages.input from until for octet_length(joined)) = joined then
                part_nos := part_nos || part.part_no;
                until := until + octet_length(joined);
                -- That of this input: the one before may have another, or a single message.
                separator := coalesce(separator, case when substring(known_messages.input from until for 2) = ', ' then ', ' else ',' end);
            else
                exit when part_nos is not null;
            end if;
        end loop;
    end if;

    rest_at := case
        when substring(known_messages.input from until for 1) = ']' then until
        when substring(known_messages.input from until for octet_length(separator)) = convert_to(separator, 'UTF8') then until + octet_length(separator)
    end;
    if rest_at is null then
        part_nos := null;
    end if;
end
$$;

comment on function agui_internal.known_messages is
    'The messages at the beginning of an input that the input in parts before it has, too: the '
    'numbers of their parts, what stands between them, and the places in bytes, from 1, of the first of '
    'them, behind the last (until), and of what follows (rest_at). They need not be parsed again. '
    'part_nos is null if there are none.';
