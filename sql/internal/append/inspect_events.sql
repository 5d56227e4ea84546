create or replace function agui_internal.inspect_events(events json, subject text)
returns agui_internal.event_inspection
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 64 * 1024 * 1024;
    max_depth constant int := 1000;
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
            hint = 'A single event goes in as an array of one.';
    end if;
    if octet_length(events::text) > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the call has %s bytes of events, more than the %s that it takes',
                subject, octet_length(events::text), max_bytes),
            hint = 'Append the events in several calls.';
    end if;

    select glance.n, false, glance.all_typed, glance.any_long, glance.lifecycle_n
    into found.n, found.starts, all_typed, any_long, lifecycle_n
    from agui_internal.scan_events(events) as glance;

    if not all_typed or any_long then
        select
            min(position) filter (where json_typeof(value) <> 'object'),
            -- Depth takes bytes: most events are too short to be too deep, and need no call to tell.
            min(position) filter (
                where case when octet_length(value::text) > 2 * max_depth then agui_internal.json_too_deep(value::text, max_depth) end
            )
        into bad_at, deep_at
        from json_array_elements(events) with ordinality as element (value, position);

        if found.n = 0 then
            raise exception using
                errcode = 'UI008',
                message = format('%s: events is an empty array, there is nothing to append', subject);
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
            position,
            guarded.event ->> 'type' as type,
            guarded.event ->> 'runId' as run_id,
            nullif(guarded.event ->> 'parentRunId', '') as parent_run_id
        from json_array_elements(events) with ordinality as element (value, position)
        cross join lateral (select agui_internal.json_guard(value::text)::json as event offset 0) as guarded
        where (strpos(value::text, 'RUN_') > 0 or strpos(value::text, '\u') > 0)  -- the others need no look into them
            and guarded.event ->> 'type' in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR')
        order by position
    loop
        if found.ended_at is not null and not (event.type = 'RUN_ERROR' and found.ended_by = 'RUN_FINISHED') then
            exit;  -- the check below says what is wrong
        end if;
        if event.type = 'RUN_STARTED' then
            if event.position > 1 then
                raise exception using
                    errcode = 'UI009',
                    message = format('%s: event %s of the call is a RUN_STARTED, but a run has one, and it is its first event',
                        subject, event.position),
                    hint = 'Append the events of each run in calls of their own.';
            end if;
            found.starts := true;
            found.run_id := event.run_id;
            found.parent_run_id := event.parent_run_id;
        else
            found.ended_by := event.type;
            found.ended_at := event.position;
        end if;
    end loop;

    -- A run ends once; only RUN_ERROR may still follow RUN_FINISHED.
    if found.ended_at < found.n then
        raise exception using
            errcode = 'UI005',
            message = format('%s: event %s of the call comes after the %s that ended the run',
                subject, found.ended_at + 1, found.ended_by);
    end if;
    return found;
end
$$;

comment on function agui_internal.inspect_events(json, text) is
    'Checks what agui.append is given (UI008: no array of objects with a type, UI011: more than 64 MB or nested more than 1,000 deep) '
    'and finds what it means to the life cycle of its run.';

revoke execute on function agui_internal.inspect_events(json, text) from public;
