create or replace function agui_internal.inspect_events(events json, thread_id text, run_id text, subject text)
returns agui_internal.event_inspection
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    max_bytes constant int := agui_internal.max_call_bytes();
    max_depth constant int := agui_internal.max_json_depth();
    -- Patterns of events of the life cycle, and of arrays of one, and of questions.
    life_cycle constant bytea[] := array['{"type":"RUN\\_%', '{"type": "RUN\\_%', '[{"type":"RUN\\_%', '[{"type": "RUN\\_%', agui_internal.question_pattern()];
    bytes_of_large_event constant int := 1000000;
    call_bytes constant int := agui_internal.json_octets(events);
    found       agui_internal.event_inspection;
    all_plain   boolean;
    has_large   boolean;
    large_is_deep boolean;
    bad_at      int;
    deep_at     int;
    untyped_at  int;
    other_run   text;
    event       record;
begin
    if events is null or json_typeof(events) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: events must be a JSON array of AG-UI events, not %s',
                subject, coalesce(json_typeof(events), 'null')),
            hint = 'Pass a single event as an array of one.';
    end if;
    if call_bytes > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the call has %s bytes of events, more than the limit of %s', subject, call_bytes, max_bytes),
            hint = 'Append the events in several calls.';
    end if;

    -- Splitting the array takes three copies of a large event, so an array of one is searched as a
    -- whole.
    if call_bytes > bytes_of_large_event and json_array_length(events) = 1 then
        found.n := 1;
        select agui_internal.has_evident_type(call.bytes) and call.bytes not like all (life_cycle) into all_plain
        from (select agui_internal.json_bytes(events) as bytes offset 0) as call;
        has_large := true;
        all_plain := all_plain or agui_internal.is_typed_plain(events);
    else
        select scan.n, scan.all_plain, scan.largest > bytes_of_large_event into found.n, all_plain, has_large
        from agui_internal.scan_events(events) as scan;
    end if;
    -- A large event is measured with those around it, because to take it out would copy it.
    if has_large then
        large_is_deep := agui_internal.json_too_deep(events, max_depth + 1);
        all_plain := all_plain and not large_is_deep;
    end if;
    if all_plain then
        return found;
    end if;
    if found.n = 0 then
        raise exception using
            errcode = 'UI008',
            message = format('%s: events is an empty array, so there is nothing to append', subject);
    end if;

    -- A row has only small fields of an event, because the loop holds many rows.
    for event in
        select
            element.position,
            element.kind,
            -- Nesting takes bytes.
            case
                when element.bytes is null and large_is_deep or element.bytes is not null and element.octets > 2 * max_depth
                    then agui_internal.json_too_deep(element.value, max_depth)
            end as is_deep,
            element.is_evident or coalesce(left(parsed.type::text, 1) = '"', false) as is_typed,
            ends.type,
            ends.event ->> 'runId' as run_id,
            ends.event ->> 'threadId' as thread_id,
            nullif(ends.event ->> 'parentRunId', '') as parent_run_id,
            case when ends.type <> 'RUN_STARTED' then agui_internal.status_after(ends.type, ends.event -> 'outcome', false) end as status,
            coalesce(json_typeof(ends.event -> 'outcome'), 'null') = 'null' as is_plain,
            case when ends.type = 'RUN_ERROR' then agui_internal.cut_off_reason(ends.event) end as cut_off_reason
        from (
            select
                split.position::int,
                split.value,
                split.octets,
                split.bytes,
                json_typeof(split.value) as kind,
                json_typeof(split.value) = 'object' and coalesce(agui_internal.has_evident_type(split.bytes), false) as is_evident
            from (
                select
                    sized.*,
                    -- null: a copy of the event would be too large
                    case when sized.octets <= bytes_of_large_event then agui_internal.json_bytes(sized.value) end as bytes
                from (
                    select given.position, given.value, agui_internal.json_octets(given.value) as octets
                    from json_array_elements(events) with ordinality as given (value, position)
                    offset 0
                ) as sized
                offset 0
            ) as split
            offset 0
        ) as element
        cross join lateral (
            select case
                when element.kind = 'object'
                    and (not element.is_evident or element.bytes like any (life_cycle))
                    then case
                        when element.bytes is null then agui_internal.life_cycle_members(element.value)
                        else agui_internal.json_guarded(element.value)
                    end
            end as event
            offset 0
        ) as guarded
        -- Each operator reads the whole event, so its type is read once.
        cross join lateral (select guarded.event -> 'type' as type offset 0) as parsed
        left join lateral (
            select
                parsed.type #>> '{}' as type,
                guarded.event
            where parsed.type #>> '{}' in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') or agui_internal.is_question(guarded.event)
            offset 0
        ) as ends on true
        where not element.is_evident or guarded.event is not null or element.octets > 2 * max_depth
    loop
        if event.kind <> 'object' then
            bad_at := coalesce(bad_at, event.position);
        end if;
        if event.is_deep then
            deep_at := coalesce(deep_at, event.position);
        end if;
        if not event.is_typed then
            untyped_at := coalesce(untyped_at, event.position);
        end if;
        continue when event.type is null;
        if event.type not in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') then
            found.asks := true;
            continue;
        end if;
        if event.position = 1 then
            found.begins_with := event.type;
            found.begins_unnamed := event.run_id is null and event.thread_id is null;
        end if;
        if event.type = 'RUN_STARTED' then
            found.reopens_at := event.position;
            -- The values read from the event are guarded, so a backslash is an escape in them.
            if event.run_id <> replace(run_id, '\', '\u005c') then
                other_run := coalesce(other_run, event.run_id);
            end if;
            if event.thread_id <> replace(thread_id, '\', '\u005c') then
                found.other_thread := coalesce(found.other_thread, event.thread_id);
            end if;
            if event.position = 1 then
                found.parent_run_id := event.parent_run_id;
            else
                found.restarts_at := coalesce(found.restarts_at, event.position);
            end if;
        else
            if found.late_at is null
                or found.late_at = event.position and event.type = 'RUN_ERROR' and found.status <> 'failed'
            then
                found.late_at := event.position + 1;
            end if;
            -- Behind RUN_ERROR an end has no effect, until a RUN_STARTED.
            if (found.status = 'failed' and found.ends_at > coalesce(found.reopens_at, 0)) is not true then
                -- A plain end makes interrupts of what was asked. It may have been asked before the call.
                found.is_finish := event.status = 'finished' and event.is_plain and found.asks is null;
                found.status := case when event.status = 'finished' and event.is_plain and found.asks then 'interrupted' else event.status end;
                found.ends_at := event.position;
                found.cut_off_reason := event.cut_off_reason;
            end if;
        end if;
        found.asks := false;
    end loop;

    if bad_at is not null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: event %s of the call is not a JSON object', subject, bad_at),
            detail = format('{"event": %s}', bad_at);
    end if;
    if deep_at is not null then
        raise exception using
            errcode = 'UI011',
            message = format('%s: event %s of the call is nested more than %s levels deep', subject, deep_at, max_depth),
            detail = format('{"event": %s}', deep_at);
    end if;
    if untyped_at is not null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: event %s of the call has no "type", which must be a string', subject, untyped_at),
            detail = format('{"event": %s}', untyped_at);
    end if;
    if other_run is not null then
        raise exception using
            errcode = 'UI009',
            message = format('%s: RUN_STARTED names another run, %s', subject, agui_internal.quoted_id(other_run)),
            hint = 'Append the events of each run in a separate call.';
    end if;
    if found.late_at > found.n then
        found.late_at := null;
    end if;
    return found;
end
$$;

comment on function agui_internal.inspect_events is
    'Validates the events of agui.append and finds out what they mean for the life cycle of the '
    'run. UI008: no array of objects with a type; UI009: a RUN_STARTED that names another run; '
    'UI011: more than 64 MB, or nested more than 1,000 levels deep.';

create or replace function agui_internal.is_typed_plain(events json)
returns boolean
language plpgsql
volatile
strict
set search_path = pg_catalog, pg_temp
as $$
declare
    type json;
begin
    -- Nothing of a large event is copied.
    type := events #> '{0,type}';
    return json_typeof(type) = 'string' and type #>> '{}' <> all (array['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'] || agui_internal.event_types('ask'));
exception
    -- A string with \u0000 or half a surrogate pair.
    when data_exception then
        return false;
end
$$;

comment on function agui_internal.is_typed_plain is
    'Whether an array of one event has a type that does not belong to the life cycle of its run. '
    'Not true: agui_internal.inspect_events has to check.';

create or replace function agui_internal.cut_off_reason(event json)
returns text
language sql
immutable
parallel safe
return case
    when event ->> 'type' = 'RUN_ERROR' and event ->> 'code' = 'RUN_CUT_OFF' and starts_with(event ->> 'message', 'The run was cut off: ')
        then nullif(replace(substr(event ->> 'message', length('The run was cut off: ') + 1), '\u005c', '\'), '')
end;

comment on function agui_internal.cut_off_reason is
    'The reason in an event (guarded) that agui_internal.close_run wrote; null: it is another event.';

create or replace function agui_internal.life_cycle_members(event json)
returns json
language plpgsql
volatile
strict
set search_path = pg_catalog, pg_temp
as $$
declare
    name    text;
    member  json;
    members text[];
    opaque  text;
    plain   json;
begin
    select
        case
            when agui_internal.has_evident_type(given.bytes) and given.bytes not like all (array['{"type":"RUN\\_%'::bytea, '{"type": "RUN\\_%'::bytea, agui_internal.question_pattern()])
                then '{"type":""}'
        end
    into plain
    from (select agui_internal.json_bytes(event) as bytes offset 0) as given;
    if plain is not null then
        return plain;
    end if;

    loop
        members := '{}';
        -- A statement for each member, because PostgreSQL 15 keeps what an operator read until the
        -- statement ends.
        begin
            foreach name in array array['type', 'name', 'runId', 'threadId', 'parentRunId', 'outcome', 'code', 'message'] loop
                member := event -> name;
                if opaque is not null then
                    member := replace(replace(member::text, '\\u', '\u'), '\\x', '\\');
                end if;
                member := agui_internal.json_guarded(member);
                members := members || (to_json(name) || ':' || member);
                exit when name = 'type'
                    and (json_typeof(member) = 'string' and member #>> '{}' = any (array['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'] || agui_internal.event_types('ask'))) is not true;
            end loop;
            return '{' || array_to_string(members, ',') || '}';
        exception
            -- A string with \u0000 or half a surrogate pair. The escapes are hidden as in
            -- agui_internal.json_members, in a statement each for the sake of memory.
            when data_exception then
                if opaque is not null then
                    raise;
                end if;
                -- A name with an escape of a letter would not be found.
                if event::text like any (array['%\\u004%', '%\\u005%', '%\\u006%', '%\\u007%']) then
                    return agui_internal.json_guarded(event);
                end if;
                opaque := replace(event::text, '\\', '\x');
                opaque := replace(opaque, '\u', '\\u');
                opaque := replace(opaque, '\x', '\\x');
                event := opaque;
                opaque := '';
        end;
    end loop;
end
$$;

comment on function agui_internal.life_cycle_members is
    'Of a large event, the members that tell what it means for the life cycle of its run, as '
    'agui_internal.json_guarded writes them. The type is "" if it evidently belongs to none.';

create or replace function agui_internal.quoted_id(id text)
returns text
language sql
immutable
parallel safe
return case
    when id ~ '^[[{]' then 'which is not a string'
    else agui_internal.json_unguard(to_json(left(id, 200))::text)
end;

comment on function agui_internal.quoted_id is
    'Quotes an id from an event (guarded text) for an error text. Error texts appear in the log of '
    'the server, so a value that cannot be an id is left out.';

create or replace function agui_internal.inspect_ids(thread_id text, run_id text, scope text, function_name text)
returns void
language plpgsql
immutable
parallel safe
-- Every beginning of a run calls it, and pinning the search path would take longer than the tests.
-- So every name is qualified.
as $$
begin
    if thread_id is null or thread_id operator(pg_catalog.=) '' or run_id is null or run_id operator(pg_catalog.=) '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = pg_catalog.format('%s: thread id and run id must not be empty, and scope must not be null', function_name);
    end if;
    if pg_catalog.octet_length(run_id) operator(pg_catalog.>) 1024
        or pg_catalog.octet_length(thread_id) operator(pg_catalog.>) 1024
        or pg_catalog.octet_length(scope) operator(pg_catalog.>) 1024
    then
        raise exception using
            errcode = 'UI011',
            message = pg_catalog.format('%s: thread id, run id and scope are limited to 1,024 bytes each',
                pg_catalog.left(pg_catalog.format('run "%s" of thread "%s"', run_id, thread_id), 200));
    end if;
end
$$;

comment on function agui_internal.inspect_ids is
    'Validates the ids of a new run. UI008: one is missing; UI011: one is too long.';

create or replace function agui_internal.inspect_input(input json, events json, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(input) <> 'object' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: its input is a JSON %s, expected an object', subject, json_typeof(input)),
            hint = 'The input of a run is the RunAgentInput object of AG-UI.';
    end if;
    if agui_internal.json_octets(events) + agui_internal.json_octets(input) > agui_internal.max_call_bytes() then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the call has %s bytes of events and %s of input, together more than the limit of %s',
                subject, agui_internal.json_octets(events), agui_internal.json_octets(input), agui_internal.max_call_bytes()),
            hint = 'Begin the run with fewer events, and append the others in later calls.';
    end if;
    if agui_internal.json_too_deep(input, agui_internal.max_json_depth()) then
        raise exception using
            errcode = 'UI011',
            message = format('%s: its input is nested more than %s levels deep', subject, agui_internal.max_json_depth());
    end if;
end
$$;

comment on function agui_internal.inspect_input is
    'Validates the input of a run. UI008: not an object; UI011: too large together with the events '
    'of the call, or nested too deeply.';

create or replace function agui_internal.max_call_bytes()
returns int
language sql
immutable
parallel safe
return 64 * 1024 * 1024;

comment on function agui_internal.max_call_bytes is
    'The maximum size in bytes of the events and inputs of one call of agui.append or '
    'agui.append_many.';

create or replace function agui_internal.json_too_deep(document json, max_depth int)
returns boolean
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- What splitting text takes is a multiple of its size, so a large document is read in slices.
    slice_bytes constant int := 65536;
    -- Depth counts after so many rounds that take the innermost brackets away.
    rounds      constant int := 8;
    bytes       bytea;
    offset_now  int := 1;
    slice       text;
    in_string   boolean := false;  -- whether the slice begins in a string
    parts       int;
    brackets    text;
    few         text;
    depth       int := 0;          -- where the slice begins
    height      int;               -- how far the slice rises above it at most
begin
    -- More levels than max_depth have more than half as many brackets of one kind. Most documents
    -- have fewer.
    if (
        select given.bytes not like all (array[
            (repeat('%[', max_depth / 2 + 1) || '%')::bytea, (repeat('%{', max_depth / 2 + 1) || '%')::bytea
        ])
        from (select agui_internal.json_bytes(document) as bytes offset 0) as given
    ) then
        return false;
    end if;

    bytes := agui_internal.json_bytes(document);
    while offset_now <= octet_length(bytes) loop
        -- Each byte is a character, also half of one.
        slice := convert_from(substring(bytes from offset_now for slice_bytes), 'LATIN1');
        if (length(slice) - length(rtrim(slice, '\'))) % 2 = 1 then
            slice := slice || convert_from(substring(bytes from offset_now + length(slice) for 1), 'LATIN1');
        end if;
        offset_now := offset_now + length(slice);
        if strpos(slice, '\') > 0 then
            slice := replace(replace(slice, '\\', ''), '\"', '');
        end if;

        -- Outside of strings (every second part between quotes) only brackets are kept.
        select
            count(*),
            string_agg(translate(part, E'[]{},: 0123456789.-etrufalsnE+\t\n\r', '[][]'), '' order by position) filter (where position % 2 = 1)
        into parts, brackets
        from string_to_table(case when in_string then '"' || slice else slice end, '"') with ordinality as split (part, position);
        in_string := parts % 2 = 0;

        few := brackets;
        for round in 1 .. rounds loop
            exit when few = '';
            few := replace(few, '[]', '');
        end loop;
        height := agui_internal.bracket_height(few);
        if depth + height + rounds > max_depth and depth + agui_internal.bracket_height(brackets) > max_depth then
            return true;
        end if;
        depth := depth + 2 * length(replace(few, ']', '')) - length(few);
    end loop;
    return false;
end
$$;

comment on function agui_internal.json_too_deep is
    'Whether arrays and objects of a valid JSON document are nested more than max_depth levels '
    'deep. It takes little more memory than the document.';

create or replace function agui_internal.max_json_depth()
returns int
language sql
immutable
parallel safe
return 1000;

comment on function agui_internal.max_json_depth is
    'The maximum nesting depth of arrays and objects in an event or an input.';

create or replace function agui_internal.plain_event_count(events json)
returns int
language sql
stable
parallel safe
-- Inlined. A single token, as most live streams bring it, is recognized by its text: the only "}"
-- ends the array, so there is one object, without others in it. Setting up an expression takes
-- longer than evaluating it, so there are few functions here.
return case
    when octet_length(events::text) <= 1000
        and events::text like '[{"type":"%}]'
        and events::text not like all (array['[{"type":"RUN\_%', '%}%}%', '%"type"%"type"%', '%\\u%'])
        and strpos(events::text, agui_internal.question_name()) = 0
    then 1
    else agui_internal.count_plain_events(events)
end;

comment on function agui_internal.plain_event_count is
    'The number of these events if they are evidently valid and do not belong to the life cycle of '
    'their run; null if agui_internal.inspect_events has to check.';

create or replace function agui_internal.count_plain_events(events json)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.is_single_token_event(events) then
        return 1;
    end if;
    -- Most events that need further checks need no look at each event.
    if (json_typeof(events) = 'array' and strpos(events::text, '"RUN_') = 0) is not true then
        return null;
    end if;
    return (select scan.n from agui_internal.scan_events(events) as scan where scan.all_plain);
end
$$;

comment on function agui_internal.count_plain_events is
    'Implements agui_internal.plain_event_count for all but the most frequent form of a single token.';

create or replace function agui_internal.is_single_token_event(events json)
returns boolean
language sql
immutable
parallel safe
-- It is inlined because it uses only built-in functions and no subquery.
return octet_length(events::text) <= 1000
    and strpos(events::text, '\u') = 0
    and strpos(events::text, agui_internal.question_name()) = 0
    and json_typeof(events) = 'array'
    and events -> 1 is null
    and json_typeof(events #> '{0,type}') = 'string'
    and events #>> '{0,type}' not in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR');

comment on function agui_internal.is_single_token_event is
    'Whether this is an array of a single short event that does not belong to the life cycle of '
    'its run, as most live streams bring. If not true, agui_internal.inspect_events has to check.';

create or replace function agui_internal.scan_events(
    events json,
    out n         int,
    out all_plain boolean,
    out largest   int
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Most calls need no parsing of each event. Nesting takes bytes, so a short event is not deep.
    -- A large one is not copied.
    select
        count(*),
        coalesce(bool_and(
            event.bytes is not null
            and event.bytes like '{%'::bytea
            and agui_internal.has_evident_type(event.bytes)
            and event.bytes not like all (array['{"type":"RUN\\_%'::bytea, '{"type": "RUN\\_%'::bytea])
        ), false) and strpos(events::text, agui_internal.question_name()) = 0,  -- once, not for each event
        max(event.bytes_held)
    into n, all_plain, largest
    from (
        select
            pg_column_size(value) as bytes_held,
            case when pg_column_size(value) <= 2000 then agui_internal.json_bytes(value) end as bytes
        from json_array_elements(events)
        offset 0
    ) as event;
end
$$;

comment on function agui_internal.scan_events is
    'Inspects a JSON array of events without parsing each event: how many there are; and whether they are plain: short, of a type that '
    'is evident and does not belong to the life cycle; and the bytes that the largest takes.';

create or replace function agui_internal.has_evident_type(event bytea)
returns boolean
language sql
immutable
parallel safe
-- Inlined. If an event, or an array of one, begins with its type, and "type" occurs nowhere else,
-- then that is the type. A type in other letters would have their escapes: \u004 to \u007 begin
-- those of ASCII letters.
return event like any (array['{"type":"%'::bytea, '{"type": "%'::bytea, '[{"type":"%'::bytea, '[{"type": "%'::bytea])
    and event not like '%"type"%"type"%'::bytea
    and (
        event not like '%\\\\u00%'::bytea
        or event not like all (array['%\\\\u004%'::bytea, '%\\\\u005%'::bytea, '%\\\\u006%'::bytea, '%\\\\u007%'::bytea])
    );

comment on function agui_internal.has_evident_type is
    'Whether an event (agui_internal.json_bytes), or an array of one event, shows its type without being parsed.';

create or replace function agui_internal.refuse_misnamed(events json, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    first json;
begin
    -- Splitting takes copies of a large call.
    if agui_internal.json_octets(events) > 1000000 then
        return;
    end if;
    -- Not events -> 0, which fails if a string holds \u0000 or a lone surrogate.
    select agui_internal.json_guarded(element.value) into first
    from json_array_elements(events) as element (value)
    limit 1;
    if first ->> 'type' like 'EventType.%'
        or first ->> 'type' = 'RUN_STARTED' and (first -> 'run_id' is not null or first -> 'thread_id' is not null)
    then
        raise exception using
            errcode = 'UI008',
            message = format('%s: its first event has the names of Python (run_id, thread_id, EventType.RUN_STARTED), not those of AG-UI (runId, threadId, RUN_STARTED)', subject),
            hint = 'No client reads such events. Encode them with event.model_dump_json(by_alias=True, exclude_none=True), or with EventEncoder of ag-ui-protocol.';
    end if;
end
$$;

comment on function agui_internal.refuse_misnamed is
    'UI008: the first event of a new run is a RUN_STARTED of pydantic''s model_dump without aliases. Its '
    'ids, and those of all events behind it, have names that no client reads.';

create or replace function agui_internal.text_bytes_to_store(events json)
returns int
language sql
stable
parallel safe
return case
    -- Arguments are usually not compressed. A value read from a table may be.
    when pg_column_compression(events) is not null then octet_length(events::text)
    when pg_column_size(events) > 2000 then pg_column_size(events)
end;

comment on function agui_internal.text_bytes_to_store is
    'The value of batch.text_bytes for a new batch: slightly more than the bytes of its text, or '
    'null if the batch is too small to be compressed.';

create or replace function agui_internal.inspect_messages(messages json, thread_id text)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(messages) is distinct from 'array'
        or exists (select from json_array_elements(messages) as listed (message) where json_typeof(listed.message) <> 'object')
    then
        raise exception using
            errcode = 'UI008',
            message = format('messages for thread "%s": they are no list of objects', thread_id),
            hint = 'Pass the list of messages of a RunAgentInput.';
    end if;
end
$$;

comment on function agui_internal.inspect_messages is 'Refuses what is no list of messages.';
