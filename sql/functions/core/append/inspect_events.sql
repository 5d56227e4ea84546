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

comment on function agui_internal.inspect_events(json, text, text, text) is
    'Validates the events of agui.append and finds out what they mean for the life cycle of the '
    'run. UI008: no array of objects with a type; UI009: a RUN_STARTED that names another run; '
    'UI011: more than 64 MB, or nested more than 1,000 levels deep.';

revoke execute on function agui_internal.inspect_events(json, text, text, text) from public;
