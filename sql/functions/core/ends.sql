create or replace function agui_internal.last_end(thread_key uuid, run_no int, out seq bigint, out status text)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    select event.seq, event.status into last_end.seq, last_end.status
    from agui_internal.life_cycle(thread_key, run_no) as event
    where event.type <> 'RUN_STARTED' and not event.is_late
    order by event.seq desc
    limit 1;
end
$$;

comment on function agui_internal.last_end is
    'The last RUN_FINISHED or RUN_ERROR of a run that has effect, as its log says, and the status after it; nulls: it has none.';

create or replace function agui_internal.life_cycle(thread_key uuid, run_no int default null)
returns setof agui_internal.life_event
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select event.run_no, event.place, event.seq, event.type, event.status, event.is_late, event.thread_id, event.run_id, event.parent_run_id, event.input
    from (
        select
            batch.run_no,
            (batch.events_before + element.position)::bigint as place,
            batch.first_seq + element.position - 1 as seq,
            named.type,
            is_question,
            agui_internal.status_after(
                named.type,
                guarded.event -> 'outcome',
                max(batch.first_seq + element.position) filter (where is_question) over before
                > coalesce(max(batch.first_seq + element.position) filter (where not is_question) over before, 0)
            ) as status,
            named.type <> 'RUN_STARTED' and coalesce(
                max(batch.first_seq + element.position) filter (where named.type = 'RUN_ERROR') over before
                > coalesce(max(batch.first_seq + element.position) filter (where named.type = 'RUN_STARTED') over before, 0),
                false
            ) as is_late,
            guarded.event ->> 'threadId' as thread_id,
            guarded.event ->> 'runId' as run_id,
            nullif(guarded.event ->> 'parentRunId', '') as parent_run_id,
            case when json_typeof(guarded.event -> 'input') = 'object' then guarded.event -> 'input' end as input
        from (
            -- One scan: of a thread that was just stored the planner has no statistics, and would read the
            -- batches once more for each of them.
            select
                stored.run_no, stored.first_seq, stored.events,
                sum(stored.n) over (partition by stored.run_no order by stored.first_seq) - stored.n as events_before
            from agui.batch as stored
            where stored.thread_key = life_cycle.thread_key and (life_cycle.run_no is null or stored.run_no = life_cycle.run_no)
        ) as batch
        -- agui_internal.verify_batches reports a batch that is not an array.
        cross join lateral json_array_elements(case json_typeof(batch.events) when 'array' then batch.events else '[]' end)
            with ordinality as element (event, position)
        cross join lateral (select agui_internal.json_guarded(element.event)) as guarded (event)
        -- Each reading of a member takes as much memory as the event.
        cross join lateral (select guarded.event ->> 'type' as type offset 0) as named
        cross join lateral (select named.type = any (agui_internal.event_types('ask'))) as asking (is_question)
        where agui_internal.may_begin_or_end(batch.events)
            and agui_internal.may_begin_or_end(element.event)
            and (named.type in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') or is_question and agui_internal.is_question(guarded.event))
        window before as (partition by batch.run_no order by batch.first_seq, element.position rows between unbounded preceding and 1 preceding)
    ) as event
    where not event.is_question;
end
$$;

comment on function agui_internal.life_cycle is
    'The events in the log of a thread, or of one of its runs, that begin and end runs.';

create or replace function agui_internal.status_after(type text, outcome json, asks boolean)
returns text
language sql
immutable
parallel safe
return case type
    when 'RUN_ERROR' then 'failed'
    when 'RUN_FINISHED' then case
        when asks and coalesce(json_typeof(outcome), 'null') = 'null' then 'interrupted'
        when json_typeof(outcome) is distinct from 'object' then 'finished'
        when outcome ->> 'type' = 'cancelled' then 'cancelled'
        -- The folds skip an interrupt without a list, too.
        when outcome ->> 'type' = 'interrupt' and json_typeof(outcome -> 'interrupts') = 'array' then 'interrupted'
        else 'finished'
    end
    else 'running'
end;

comment on function agui_internal.status_after is
    'The status of a run after an event of this type that ends it, with this outcome (guarded; '
    'null: none). asks: the run has asked before it (agui_internal.is_question). Any other type, or null: it is running.';

create or replace function agui_internal.last_finish(run agui.run, out event json, out at timestamptz, out interrupts json)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    type constant text := 'RUN_FINISHED';
    seq  bigint := run.end_seq;
begin
    case
        when run.status in ('finished', 'interrupted', 'cancelled') then
            select ending.event, ending.at into event, at from agui_internal.end_of_run(run) as ending;
        when run.status in ('failed', 'cut_off') then
            select told.event, told.at, batch.first_seq + told.position - 1 into event, at, seq
            from agui.batch as batch
            cross join lateral (
                select guarded.event, agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at, element.position
                from json_array_elements(batch.events) with ordinality as element (value, position)
                cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
                where batch.first_seq + element.position - 1 < run.end_seq
                    and agui_internal.mentions_type(element.value::text, type)
                    and guarded.event ->> 'type' = type
            ) as told
            where batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and run.end_seq
                and agui_internal.mentions_type(batch.events::text, type)
            order by batch.first_seq desc, told.position desc
            limit 1;
        else null;
    end case;
    if run.status in ('interrupted', 'failed', 'cut_off') and event is not null then
        interrupts := case
            when coalesce(json_typeof(event -> 'outcome'), 'null') = 'null' then agui_internal.questions_of_run(run, seq)
            when event -> 'outcome' ->> 'type' = 'interrupt' and json_typeof(event -> 'outcome' -> 'interrupts') = 'array'
                then event -> 'outcome' -> 'interrupts'
        end;
        interrupts := case when json_array_length(interrupts) > 0 or json_typeof(event -> 'outcome') = 'object' then interrupts end;
    end if;
end
$$;

comment on function agui_internal.last_finish is
    'The last RUN_FINISHED of a run that has effect, when it was recorded, and the interrupts that it makes (null: none); '
    'JSON is guarded. Nulls: it has none. '
    'A run that failed may have one before its RUN_ERROR.';

create or replace function agui_internal.end_of_run(run agui.run, out event json, out at timestamptz)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    select agui_internal.json_guarded(element.value), agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position])
    into event, at
    from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
    cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
    where element.position = run.end_seq - batch.first_seq + 1;
end
$$;

comment on function agui_internal.end_of_run is
    'The last RUN_FINISHED or RUN_ERROR of a run (guarded), and when it was recorded; nulls: it has none.';

-- It is inlined.
create or replace function agui_internal.mentions_type(text text, beginning text)
returns boolean
language sql
immutable
parallel safe
-- Types are capital letters and underscores: with escapes \u0041 to \u005f.
return strpos(text, beginning) > 0 or strpos(text, '\u00') > 0 and text ~ '\\u00[45]';

comment on function agui_internal.mentions_type is
    'Whether JSON text may contain an event of a type that begins so. False: it contains none.';

create or replace function agui_internal.questions_of_run(run agui.run, until bigint)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    asked text[] := '{}';
    event record;
begin
    for event in
        select guarded.event, batch.first_seq + element.position - 1 as seq
        from agui.batch as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and until
            and agui_internal.may_begin_or_end(batch.events)
            and batch.first_seq + element.position - 1 < until
            and agui_internal.may_begin_or_end(element.value)
        order by seq
    loop
        if agui_internal.is_question(event.event) then
            asked := asked || agui_internal.question_interrupt(
                event.event, agui_internal.json_string_token(agui_internal.json_guard(to_json(run.run_id)::text)), cardinality(asked)
            );
        elsif event.event ->> 'type' in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') then
            asked := '{}';
        end if;
    end loop;
    return '[' || array_to_string(asked, ',') || ']';
end
$$;

comment on function agui_internal.questions_of_run is
    'The interrupts (guarded) that the RUN_FINISHED without an outcome at a seq of a run makes of what the '
    'run has asked before.';

-- A function of its own, so that what it reads of large events is freed at once.
create or replace function agui_internal.may_begin_or_end(events json)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    -- A type written with escapes has \u00 in it.
    return (
        select given.bytes like any (array['%RUN\\_%'::bytea, '%\\\\u00%'::bytea, agui_internal.question_pattern()])
        from (select agui_internal.json_bytes(events) as bytes offset 0) as given
    );
end
$$;

comment on function agui_internal.may_begin_or_end is
    'Whether an event, or one of an array, may begin or end a run, or ask, by its bytes.';

create or replace function agui_internal.question_pattern()
returns bytea
language sql
immutable
parallel safe
return convert_to('%' || replace(agui_internal.question_name(), '_', '\_') || '%', 'UTF8');

comment on function agui_internal.question_pattern is
    'The pattern of the bytes of what may ask. It is inlined.';

create or replace function agui_internal.is_question(event json)
returns boolean
language sql
immutable
parallel safe
return event ->> 'type' = any (agui_internal.event_types('ask')) and event ->> 'name' = agui_internal.question_name();

comment on function agui_internal.is_question is
    'Whether an event (guarded) asks.';

create or replace function agui_internal.question_interrupt(event json, run_id text, asked_before int)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        select '{' || string_agg('"' || member.name || '":' || member.value, ',' order by member.place) || ',"source":' || event::text || '}'
        from (
            select
                listed.name,
                listed.place,
                coalesce(
                    (array_agg(found.value order by listed.choice) filter (where found.value ^@ '"' and found.value <> '""'))[1],
                    case listed.name
                        -- The place stays when the run is compacted.
                        when 'id' then left(coalesce(run_id, '""'), -1) || '-question-' || asked_before + 1 || '"'
                        when 'reason' then to_json(agui_internal.question_name())::text
                    end
                ) as value
            from agui_internal.question_members() as listed
            cross join lateral (select (event #> listed.path)::text as value) as found
            group by listed.name, listed.place
        ) as member
        where member.value is not null
    );
end
$function$;

comment on function agui_internal.question_interrupt is
    'The interrupt that a question makes if its run comes to a RUN_FINISHED without an outcome. event is '
    'the whole event, which stays as its source; run_id a JSON string (null: unknown); both guarded. '
    'asked_before: how many questions of the run are before it. compaction.Fold does the same.';

create or replace function agui_internal.malformed_events_of(run agui.run)
returns table (seq bigint, type text, problem text)
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    needed constant jsonb := agui_internal.needed_fields();
begin
    return query
    select batch.first_seq + element.position - 1, named.type, lacking.text
    from agui.batch as batch
    cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
    cross join lateral (select agui_internal.json_guarded(element.value) as event offset 0) as guarded
    cross join lateral (select guarded.event ->> 'type' as type offset 0) as named
    cross join lateral (
        select
            case
                when named.type like 'EventType.%' then format('its type is not "%s"', substr(named.type, 11))
                else string_agg(
                    case
                        when python.value is not null then format('it has "%s", not "%s"', python.name, field.name)
                        when found.value is null then format('it has no "%s"', field.name)
                        else format('"%s" is of type %s, not %s', field.name, json_typeof(found.value), replace(field.kinds, ' | ', ' or '))
                    end,
                    ', ' order by field.name
                )
            end as text
        from jsonb_each_text(needed -> named.type) as field (name, kinds)
        cross join lateral (select guarded.event -> field.name as value offset 0) as found
        cross join lateral (select lower(regexp_replace(field.name, '([A-Z])', '_\1', 'g')) as name) as spelled
        cross join lateral (select spelled.name, case when found.value is null and spelled.name <> field.name then guarded.event -> spelled.name end as value offset 0) as python
        where (json_typeof(found.value) = any (string_to_array(field.kinds, ' | '))) is not true
    ) as lacking
    where batch.thread_key = run.thread_key
        and batch.run_no = run.run_no
        and batch.first_seq >= run.first_seq
        and (run.last_seq is null or batch.first_seq <= run.last_seq)
        and lacking.text is not null
    order by batch.first_seq, element.position;
end
$$;

comment on function agui_internal.malformed_events_of is
    'The events of a run that have no effect, because they lack a field that their type needs (agui_internal.needed_fields), '
    'or have a type of Python, with the reason.';

create or replace function agui_internal.why_ended(run agui.run, max_length int default 2147483647)
returns agui_internal.run_end
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    why agui_internal.run_end;
    event json;
begin
    why.stop_reason := run.stop_reason;
    why.cut_off_reason := run.cut_off_reason;
    if run.status in ('failed', 'cut_off') or run.status = 'cancelled' and run.stop_reason is null then
        select agui_internal.json_guarded(batch.events) -> (run.end_seq - batch.first_seq)::int into event
        from agui_internal.batch_with(run.thread_key, run.end_seq) as batch;
    end if;
    if run.status = 'cancelled' then
        why.stop_reason := coalesce(
            why.stop_reason,
            case when json_typeof(event -> 'result') = 'object' then agui_internal.json_string_text((event -> 'result' -> 'reason')::text) end
        );
    else
        why.error_code := agui_internal.json_string_text((event -> 'code')::text);
        why.error_message := agui_internal.json_string_text((event -> 'message')::text);
    end if;
    why.error_code := left(why.error_code, max_length);
    why.error_message := left(why.error_message, max_length);
    why.stop_reason := left(why.stop_reason, max_length);
    why.cut_off_reason := left(why.cut_off_reason, max_length);
    return why;
end
$$;

comment on function agui_internal.why_ended is
    'Why a run ended as it did. Reads the batch of its last end, of a run that failed, was cut off '
    'or was cancelled without a request; nothing of the others. max_length: of each text, in '
    'characters.';
