create or replace function agui_internal.inspect_events(events json, thread_id text, run_id text, subject text)
returns agui_internal.event_inspection
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := agui_internal.max_call_bytes();
    max_depth constant int := agui_internal.max_json_depth();
    found       agui_internal.event_inspection;
    all_typed   boolean;
    any_long    boolean;
    lifecycle_n int;
    bad_at      bigint;
    deep_at     bigint;
    event       record;
begin
    if events is null or json_typeof(events) <> 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: events must be a JSON array of AG-UI events, not %s',
                subject, coalesce(json_typeof(events), 'null')),
            hint = 'Pass a single event as an array of one.';
    end if;
    if octet_length(events::text) > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the call has %s bytes of events, more than the limit of %s',
                subject, octet_length(events::text), max_bytes),
            hint = 'Append the events in several calls.';
    end if;

    select scan.n, scan.all_typed, scan.any_long, scan.lifecycle_n
    into found.n, all_typed, any_long, lifecycle_n
    from agui_internal.scan_events(events) as scan;

    if not all_typed or any_long then
        select
            min(position) filter (where json_typeof(value) <> 'object'),
            -- Nesting takes bytes. Most events are too short to be nested too deeply, so their
            -- depth needs no call.
            min(position) filter (
                where case when octet_length(value::text) > 2 * max_depth then agui_internal.json_too_deep(value::text, max_depth) end
            )
        into bad_at, deep_at
        from json_array_elements(events) with ordinality as element (value, position);

        if found.n = 0 then
            raise exception using
                errcode = 'UI008',
                message = format('%s: events is an empty array, so there is nothing to append', subject);
        end if;
        if bad_at is not null then
            raise exception using
                errcode = 'UI008',
                message = format('%s: event %s of the call is not a JSON object', subject, bad_at);
        end if;
        if deep_at is not null then
            raise exception using
                errcode = 'UI011',
                message = format('%s: event %s of the call is nested more than %s levels deep', subject, deep_at, max_depth);
        end if;

        select min(position)
        into bad_at
        from rows from (json_to_recordset(agui_internal.json_guard(events::text)::json) as (type json)) with ordinality as event (type, position)
        where type is null or left(type::text, 1) <> '"';
        if bad_at is not null then
            raise exception using
                errcode = 'UI008',
                message = format('%s: event %s of the call has no "type", which must be a string', subject, bad_at);
        end if;
    elsif lifecycle_n = 0 then
        return found;
    end if;

    for event in
        select
            position::int,
            guarded.event ->> 'type' as type,
            guarded.event ->> 'runId' as run_id,
            guarded.event ->> 'threadId' as thread_id,
            nullif(guarded.event ->> 'parentRunId', '') as parent_run_id
        from json_array_elements(events) with ordinality as element (value, position)
        cross join lateral (select agui_internal.json_guard(value::text)::json as event offset 0) as guarded
        -- other events cannot be of the life cycle
        where (strpos(value::text, 'RUN_') > 0 or strpos(value::text, '\u') > 0)
            and guarded.event ->> 'type' in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR')
        order by position
    loop
        if event.position = 1 then
            found.begins_with := event.type;
        end if;
        if event.type = 'RUN_STARTED' then
            -- The values read from the event are guarded, so a backslash is an escape in them.
            if event.run_id <> replace(run_id, '\', '\u005c') then
                raise exception using
                    errcode = 'UI009',
                    message = format('%s: RUN_STARTED names another run, %s', subject, agui_internal.quoted_id(event.run_id)),
                    hint = 'Append the events of each run in a separate call.';
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
                or found.late_at = event.position and event.type = 'RUN_ERROR' and found.ended_by = 'RUN_FINISHED'
            then
                found.late_at := event.position + 1;
            end if;
            found.ended_by := event.type;
        end if;
    end loop;
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
