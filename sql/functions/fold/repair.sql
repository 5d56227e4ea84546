-- What a stream lacks that a client needs. An agent may continue after RUN_FINISHED, end in the
-- middle of a message, start a run twice, or begin one with another event. repaired_events inserts
-- a bare RUN_STARTED, an end, and the ends and starts of what is open where the client's verifier
-- wants them. The seq of an event that is given is its place.
--
-- - compaction/repair.go has the same rules. Both change together.
-- - repair_steps follows the life cycle of runs and says what to insert; most streams return before
--   it (needs_repair). Events are folded only if a MESSAGES_SNAPSHOT or an activity may have
--   removed what a later event continues.
-- - A repaired stream is folded (fold_difference). If it means something else, the events stay as
--   they came.

create or replace function agui_internal.repaired_events(events json)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    given constant json := agui_internal.with_reasoning(events);
    guarded json := agui_internal.json_guarded(given);
    step    record;

    -- The life cycle of the current run.
    phase       text := 'before';  -- running, finished, failed
    ids         text := '';        -- the members that name the run
    interrupts  text := '';
    stretch     int := 1;
    begins_at   int := 1;
    is_begun    boolean := true;   -- by the repair, or before the events
    behind      int;               -- the end after which the repair has begun the stretch
    behind_type text;
    last_type   text;

    -- What events open, by its number.
    is_known boolean[] := '{}';  -- open or suspended
    open_in  int[] := '{}';      -- the stretch in which it is open
    seen_in  int[] := '{}';      -- the last stretch in which it was started
    openings text[] := '{}';     -- its start, without the members added at the end
    closings text[] := '{}';
    owners   text[] := '{}';
    untagged int[] := '{}';      -- its inserted start, as long as no event has named a subagent since
    opened   int[] := '{}';      -- in the stretch, the oldest first

    names    text[] := '{}';     -- of calls
    replaced int := 0;           -- the number of events that may have removed messages or calls
    replaced_before int[] := '{}';

    -- The fold of the events up to a position: at the beginning of a stretch, and last.
    raws         text[];
    beginning    agui_internal.fold;
    begins_after int := -1;
    so_far       agui_internal.fold;
    folded       int := 0;
    subject      record;

    inserted agui_internal.insertion[] := '{}';
    left_out int[] := '{}';

    place    int;
    slot     int;
    name     text;
    owner    text;
    is_there boolean;
    ends_at  int;
    repaired text;
    meant    agui_internal.fold;
begin
    events := given;
    -- Most streams need no repair.
    if not agui_internal.needs_repair(guarded) then
        return given;
    end if;
    if strpos(guarded::text, 'RUN_ERROR') > 0 then
        events := agui_internal.without_late_events(events);
        guarded := agui_internal.json_guarded(events);
    end if;
    raws := array(
        select element.value::text from json_array_elements(events) with ordinality as element (value, position) order by element.position
    );

    for step in
        select * from agui_internal.repair_steps(guarded)
        union all
        -- The end of the events.
        select json_array_length(guarded) + 1, 'life', null, null, null, null, null, null, null, null, null, null
    loop
        if step.action = 'life' then
            ends_at := null;
            if step.type is null then
                exit when inserted = '{}' and left_out = '{}';
                -- From the beginning: what is open of thinking, and a question, belong to the run that an event before has named.
                meant := agui_internal.fold_given(null, array_to_string(raws, ','));
                if phase = 'running' and behind is not null and coalesce(meant.lanes = agui_internal.failed_lanes(), true) then
                    ends_at := step.position;
                end if;
            elsif step.type = 'RUN_STARTED' and step.position > 1 and phase in ('before', 'running') then
                if phase = 'before' then
                    ids := step.ids;
                    inserted := array_append(inserted, row(1, 2, '{"type":"RUN_STARTED"' || ids, null, null)::agui_internal.insertion);
                end if;
                ends_at := step.position;
            end if;

            -- Close what is open, and end a stretch that has no end.
            if step.type = 'RUN_FINISHED' and phase in ('before', 'running')
                or ends_at is not null and behind_type is distinct from 'RUN_ERROR'
            then
                for place in reverse cardinality(opened) .. 1 loop
                    if open_in[opened[place]] = stretch then
                        open_in[opened[place]] := 0;
                        inserted := array_append(inserted, row(step.position, 0, closings[opened[place]], null, null)::agui_internal.insertion);
                    end if;
                end loop;
                opened := '{}';
            end if;
            if ends_at is not null then
                inserted := array_append(inserted, row(ends_at, 1, case when behind is null then
                    '{"type":"RUN_FINISHED"' || ids
                    || case when interrupts in ('', '[]') then '' else ',"outcome":{"type":"interrupt","interrupts":' || interrupts || '}' end
                end, null, behind)::agui_internal.insertion);
            end if;

            -- Begin a stretch.
            if step.type = 'RUN_STARTED'
                or ids <> '' and (phase = 'failed' or phase = 'finished' and step.type <> 'RUN_ERROR') and step.type is not null
            then
                is_begun := step.type <> 'RUN_STARTED';
                if is_begun then
                    behind := step.position - 1;
                    behind_type := last_type;
                    inserted := array_append(inserted, row(step.position, 2, '{"type":"RUN_STARTED"' || ids, null, null)::agui_internal.insertion);
                else
                    behind := null;
                    behind_type := null;
                    ids := step.ids;
                end if;
                phase := 'running';
                if step.position > 1 then
                    stretch := stretch + 1;
                end if;
                begins_at := step.position;
                opened := '{}';
            end if;

            if step.type = 'RUN_FINISHED' then
                if ids = '' then
                    ids := step.ids;
                end if;
                interrupts := coalesce(step.interrupts, interrupts);
                phase := 'finished';
            elsif step.type = 'RUN_ERROR' then
                phase := 'failed';
            end if;
            last_type := step.type;

        elsif step.action = 'replace' then
            replaced := replaced + 1;

        elsif step.action = 'start' then
            names[step.part] := step.name;
            replaced_before[step.part] := replaced;
            is_known[step.part] := true;
            open_in[step.part] := stretch;
            seen_in[step.part] := stretch;
            openings[step.part] := step.opening;
            closings[step.part] := step.closing;
            owners[step.part] := case when step.kind <> 8 then step.owner end;
            untagged[step.part] := null;
            opened := array_append(opened, step.part);

        elsif phase in ('before', 'running')
            and (case step.action when 'need' then seen_in[step.part] <> stretch else is_known[step.part] end)
        then
            if open_in[step.part] <> stretch or step.action = 'need' then
                place := begins_at;
                slot := case when is_begun then 3 else 5 end;
                name := names[step.part];
                owner := owners[step.part];
                is_there := true;
                if step.kind <= 3 and replaced > replaced_before[step.part] then
                    -- Check whether it exists where the stretch begins, or else here.
                    if begins_after <> begins_at - is_begun::int then
                        begins_after := begins_at - is_begun::int;
                        so_far := agui_internal.fold_given(so_far, array_to_string(raws[folded + 1 : begins_after], ','));
                        folded := begins_after;
                        beginning := so_far;
                    end if;
                    subject := agui_internal.repair_subject(beginning, step.kind, step.id);
                    if not subject.is_there then
                        so_far := agui_internal.fold_given(so_far, array_to_string(raws[folded + 1 : step.position - 1], ','));
                        folded := step.position - 1;
                        subject := agui_internal.repair_subject(so_far, step.kind, step.id);
                        place := step.position;
                        slot := 3;
                    end if;
                    is_there := subject.is_there;
                    name := subject.name;
                    owner := subject.owner;
                end if;
                if is_there then
                    is_known[step.part] := true;
                    open_in[step.part] := stretch;
                    seen_in[step.part] := stretch;
                    opened := array_append(opened, step.part);
                    inserted := array_append(inserted, row(
                        place,
                        slot,
                        openings[step.part]
                        || case step.kind when 2 then ',"toolCallName":' || coalesce(name, '""') else '' end,
                        owner,
                        null
                    )::agui_internal.insertion);
                    untagged[step.part] := cardinality(inserted);
                else
                    left_out := array_append(left_out, step.position);
                    continue;
                end if;
            end if;
            if untagged[step.part] is not null and step.owner is not null and step.kind <> 8 then
                inserted[untagged[step.part]].owner := step.owner;
                untagged[step.part] := null;
            end if;
            if step.action = 'end' then
                is_known[step.part] := false;
                open_in[step.part] := 0;
                untagged[step.part] := null;
            end if;
        end if;
    end loop;

    if inserted = '{}' and left_out = '{}' then
        return events;
    end if;
    select string_agg(item.text, ',' order by item.position, item.slot, item.place) into repaired
    from (
        select element.position, 4 as slot, 0 as place, element.text
        from unnest(raws) with ordinality as element (text, position)
        where not exists (select from unnest(left_out) as gone (position) where gone.position = element.position)
        union all
        select
            lacking.position,
            lacking.slot,
            lacking.place,
            coalesce(
                agui_internal.json_unguard(
                    lacking.event || coalesce(',"subagentRunId":' || lacking.owner, '') || '}'
                ),
                raws[lacking.copy]
            )
        from unnest(inserted) with ordinality as lacking (position, slot, event, owner, copy, place)
    ) as item;
    if agui_internal.fold_difference(meant, agui_internal.fold_given(null, repaired)) is not null then
        return given;
    end if;
    return '[' || repaired || ']';
end
$function$;

comment on function agui_internal.repaired_events is
    'Adds the events that the life cycle of runs requires: a beginning after an end, and if a run '
    'begins with another event; an end before a RUN_STARTED within a run; and the ends and starts '
    'of what is open there. The result has the same meaning, and the verifier of the client '
    'accepts it if nothing else is wrong. Events that follow the rules are returned unchanged.';

-- Events that are given have no seq: their places count instead.
create or replace function agui_internal.with_reasoning(events json)
returns json
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    event  record;
    meant  record;
    opened text[];
    run_id text;
    texts  text[] := '{}';
begin
    if strpos(events::text, 'THINKING') = 0 and strpos(events::text, '\u00') = 0 then
        return events;
    end if;
    for event in
        select
            element.position,
            element.raw,
            element.type,
            agui_internal.json_string_token(element.message_id::text) as id,
            case when element.run_id::text ^@ '"' then agui_internal.json_string_token(element.run_id::text) end as run_id
        from rows from (
            json_to_recordset(agui_internal.json_guarded(events)) as (type text, "messageId" json, "runId" json),
            json_array_elements(events)
        ) with ordinality as element (type, message_id, run_id, raw, position)
        order by element.position
    loop
        if event.type = any (agui_internal.event_types('start run')) then
            run_id := event.run_id;
        end if;
        meant := agui_internal.thinking_as_reasoning(event.type, opened, event.id, run_id, event.position);
        opened := meant.opened;
        texts := array_append(texts, case
            when meant.type <> event.type then agui_internal.event_of_reasoning(event.raw, meant.type, meant.id)
            else event.raw::text
        end);
    end loop;
    return '[' || array_to_string(texts, ',') || ']';
end
$function$;

comment on function agui_internal.with_reasoning is
    'Events that are given, with those of thinking as the events of reasoning that they mean.';

create or replace function agui_internal.event_of_reasoning(event json, type text, id text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with named as (
        select agui_internal.json_member_set(
            agui_internal.json_member_set(agui_internal.json_guard(event::text), 'type', to_json(type)::text), 'messageId', id
        ) as event
    )
    select agui_internal.json_unguard(case
        when type = any (agui_internal.event_types('start reasoning')) then agui_internal.json_member_set(named.event, 'role', '"reasoning"')
        else named.event
    end)
    from named
$function$;

comment on function agui_internal.event_of_reasoning is
    'An event of thinking as one of reasoning, with the type and the id that '
    'agui_internal.thinking_as_reasoning gives it.';

create or replace function agui_internal.needs_repair(events json)
returns boolean
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with element as materialized (
        select
            element.*,
            coalesce(lag(element.type) over in_order, '') as before,
            count(*) filter (where element.type = 'RUN_STARTED') over in_order as run
        from rows from (
            json_to_recordset(events) as (type text, "messageId" json, "toolCallId" json, "stepName" json, "subagentRunId" json)
        ) with ordinality as element (type, message_id, tool_call_id, step_name, owner, position)
        window in_order as (order by element.position)
    )
    select exists (
        -- A beginning within a run, or any other event after an end.
        select from element
        where element.type = 'RUN_STARTED' and element.position > 1 and element.before not in ('RUN_FINISHED', 'RUN_ERROR')
        or element.type is distinct from 'RUN_STARTED' and element.before in ('RUN_FINISHED', 'RUN_ERROR')
            and not (element.before = 'RUN_FINISHED' and element.type = 'RUN_ERROR')
    )
    or exists (
        -- What a run leaves open when it ends or another run follows.
        select from element
        join agui_internal.event_roles() as role on role.type = element.type
        where role.does in ('start', 'end')
        group by
            element.run,
            role.part,
            agui_internal.json_string_token(case role.named_by
                when 'toolCallId' then element.tool_call_id
                when 'stepName' then element.step_name
                when 'subagentRunId' then element.owner
                when 'messageId' then element.message_id
            end::text),
            case when role.part = 'step' then agui_internal.json_string_token(element.owner::text) end
        having max(element.position) filter (where role.does = 'start') > coalesce(
                max(element.position) filter (where role.does = 'end'), 0
            )
            and element.run <= (
                select greatest(max(life.run) - 1, max(life.run) filter (where life.type = 'RUN_FINISHED'))
                from element as life
            )
    )
    -- A subagent whose parent belongs to another run.
    or exists (select from element where element.type = any (agui_internal.event_types('start subagent')) and element.run > 1)
        and strpos(events::text, 'parentSubagentRunId') > 0
$function$;

comment on function agui_internal.needs_repair is
    'Whether agui_internal.repaired_events may change events (guarded JSON). Fast; it may report '
    'true for events that need no repair, never false for events that do.';

create or replace function agui_internal.without_late_events(events json)
returns json
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select ('[' || coalesce(string_agg(element.payload::text, ',' order by element.position), '') || ']')::json
    from (
        select
            listed.payload,
            listed.position,
            (
                coalesce(max(listed.position) filter (where listed.type = 'RUN_ERROR') over before, 0)
                > coalesce(max(listed.position) filter (where listed.type = 'RUN_STARTED') over before, 0)
                and listed.type <> 'RUN_STARTED'
                and listed.type = any (agui_internal.event_types('changes something', 'fail run'))
            ) is true as is_late
        from (
            select element.payload, element.position, agui_internal.event_type(element.payload) as type
            from json_array_elements(events) with ordinality as element (payload, position)
        ) as listed
        window before as (order by listed.position rows between unbounded preceding and 1 preceding)
    ) as element
    where not element.is_late
$function$;

comment on function agui_internal.without_late_events is
    'A JSON array of events without those behind RUN_ERROR that mean something elsewhere. '
    'RUN_STARTED opens a run again.';

create or replace function agui_internal.repair_steps(
    in events json,
    out "position" int,
    out action text,
    out type text,
    out part int,
    out kind int,
    out id text,
    out opening text,
    out closing text,
    out name text,
    out owner text,
    out ids text,
    out interrupts text
)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    with element as materialized (
        select
            element.position::int as position,
            coalesce(element.type, '') as type,
            lag(element.type) over (order by element.position) in ('RUN_FINISHED', 'RUN_ERROR') as is_behind_end,
            element.body,
            -- A value that is not a string counts as absent.
            case when left(element.message_id::text, 1) = '"' then element.message_id::text end as message_id,
            case when left(element.tool_call_id::text, 1) = '"' then element.tool_call_id::text end as tool_call_id,
            case when left(element.owner::text, 1) = '"' then element.owner::text end as owner
        from rows from (
            json_to_recordset(events) as (type text, "messageId" json, "toolCallId" json, "subagentRunId" json),
            json_array_elements(events)
        ) with ordinality as element (type, message_id, tool_call_id, owner, body, position)
    ),
    part as (
        select
            element.*,
            role.part,
            role.part_no as no,
            role.opens,
            role.closes,
            role.named_by,
            case role.does when 'continue' then 'piece' else role.does end as action,
            case role.named_by
                when 'messageId' then element.message_id
                when 'toolCallId' then element.tool_call_id
                when 'stepName' then agui_internal.json_string_member(element.body, 'stepName')
                when 'subagentRunId' then element.owner
                else '""'
            end as id
        from element
        join agui_internal.event_roles() as role on role.type = element.type and role.does <> 'chunk'
    ),
    step as (
        select
            element.position,
            0 as place,
            'life' as action,
            element.type,
            null::int as kind,
            null as id,
            null as taken_by,
            null as opening,
            null as closing,
            null as name,
            null as owner,
            case when element.type in ('RUN_STARTED', 'RUN_FINISHED') then concat(
                ',"threadId":' || agui_internal.json_string_member(element.body, 'threadId'),
                ',"runId":' || agui_internal.json_string_member(element.body, 'runId')
            ) end as ids,
            case
                when element.type <> 'RUN_FINISHED' then null
                when (element.body -> 'outcome' ->> 'type' = 'interrupt') is not true then ''
                when json_typeof(element.body -> 'outcome' -> 'interrupts') = 'array' then (element.body -> 'outcome' -> 'interrupts')::text
            end as interrupts
        from element
        where element.type in ('RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR') or element.is_behind_end or element.position = 1
        union all
        select element.position, 1, 'replace', null, null, null, null, null, null, null, null, null, null
        from element
        where element.type = any (agui_internal.event_types('list messages', 'show activity', 'show or patch activity'))
        union all
        select
            part.position, 1, 'need', null, part.no, agui_internal.json_string_member(part.body, 'parentSubagentRunId'), null,
            null, null, null, null, null, null
        from part
        where part.part = 'subagent' and part.action = 'start' and part.id is not null
        union all
        select
            part.position,
            2,
            part.action,
            null,
            part.no,
            part.id,
            case when part.part = 'step' then part.owner end,
            case when part.action = 'start' then concat(
                '{"type":"', part.opens, '"',
                case when part.named_by is not null then ',"' || part.named_by || '":' || part.id end,
                case part.part
                    when 'text' then ',"role":' || agui_internal.json_string_member(part.body, 'role')
                    when 'reasoning' then ',"role":"reasoning"'
                end,
                case when part.part in ('text', 'subagent') then ',"name":' || agui_internal.json_string_member(part.body, 'name') end
            ) end,
            case when part.action = 'start' then concat(
                '{"type":"', part.closes, '"',
                case when part.named_by is not null then ',"' || part.named_by || '":' || part.id end,
                case when part.part = 'step' then ',"subagentRunId":' || part.owner end
            ) end,
            case when part.action = 'start' and part.part = 'tool' then agui_internal.json_string_member(part.body, 'toolCallName') end,
            part.owner,
            null,
            null
        from part
    )
    select
        step.position,
        step.action,
        step.type,
        case when step.kind is not null then
            dense_rank() over (
                partition by step.kind is not null
                order by step.kind, agui_internal.json_string_token(step.id) collate "C", agui_internal.json_string_token(step.taken_by) collate "C"
            )::int
        end,
        step.kind,
        agui_internal.json_string_token(step.id),
        step.opening,
        step.closing,
        step.name,
        step.owner,
        step.ids,
        step.interrupts
    from step
    where step.kind is null or step.id is not null
    order by step.position, step.place
$function$;

comment on function agui_internal.repair_steps is
    'The steps for agui_internal.repaired_events, in order, from events (guarded JSON): the life '
    'cycle of runs (life); what opens, continues and closes something (start, piece, end; need: a '
    'subagent that another one names as its parent); and what may remove messages (replace). part '
    'numbers what is opened.';

create or replace function agui_internal.repair_subject(
    in fold agui_internal.fold,
    in kind int,
    in id text,
    out is_there boolean,
    out name text,
    out owner text
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    place int;
begin
    if kind = 2 then
        select message.position, call.name into place, repair_subject.name
        from unnest(fold.bodies) with ordinality as message (body, position)
        cross join lateral (select agui_internal.json_guard(message.body)::json -> 'toolCalls' as list) as calls
        cross join lateral json_array_elements(case when json_typeof(calls.list) = 'array' then calls.list end)
            with ordinality as element (value, position)
        cross join lateral (
            select
                agui_internal.json_string_token(agui_internal.json_string_member(element.value, 'id')) as id,
                agui_internal.json_string_member(element.value -> 'function', 'name') as name
        ) as call
        where strpos(message.body, 'toolCalls') > 0 and call.id = repair_subject.id
        order by message.position, element.position
        limit 1;
        is_there := name is not null;
    else
        place := array_position(fold.message_ids, agui_internal.json_string_text(id));
        is_there := place is not null;
    end if;
    owner := agui_internal.json_string_member(agui_internal.json_guard(fold.bodies[place])::json, 'subagentRunId');
end
$function$;

comment on function agui_internal.repair_subject is
    'Whether a fold has the message or call (kind 2) with an id (a guarded JSON string), the name '
    'of the call, and the subagent that owns it (guarded JSON strings).';

create or replace function agui_internal.fold_difference(a agui_internal.fold, b agui_internal.fold)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
-- Other plans have copies of the fold.
set plan_cache_mode = force_generic_plan
as $$
declare
    differs_at bigint;
begin
    if cardinality(a.bodies) <> cardinality(b.bodies) then
        return format('%s messages instead of %s', cardinality(a.bodies), cardinality(b.bodies));
    end if;
    select min(pair.position) into differs_at
    from unnest(a.bodies, b.bodies) with ordinality as pair (a, b, position)
    where pair.a <> pair.b and not agui_internal.json_equal(pair.a, pair.b);
    if differs_at is not null then
        return format('message %s of %s differs', differs_at, cardinality(a.bodies));
    end if;
    -- A message at several places is one message: later events change all of them.
    select min(pair.position) into differs_at
    from (
        select
            place.position,
            case when place.a is not null then min(place.position) over (partition by place.a) else place.position end as first_a,
            case when place.b is not null then min(place.position) over (partition by place.b) else place.position end as first_b
        from unnest(a.message_nos, b.message_nos) with ordinality as place (a, b, position)
    ) as pair
    where pair.first_a <> pair.first_b;
    if differs_at is not null then
        return format('message %s of %s is one with another in only one of the two', differs_at, cardinality(a.bodies));
    end if;
    return case
        when not agui_internal.json_equal(a.state, b.state) then 'the state differs'
        when not agui_internal.json_equal(a.interrupts, b.interrupts) then 'the interrupts differ'
        when not agui_internal.json_equal(coalesce(a.lanes, '[]'), coalesce(b.lanes, '[]')) then 'the open chunk streams differ'
    end;
end
$$;

comment on function agui_internal.fold_difference is
    'The first difference of two folds; null: they are equal.';
