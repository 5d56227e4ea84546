-- compaction/repair.go has the rules. The loop follows the life cycle of runs and records what to
-- insert; most streams return before it. The events are folded only if a MESSAGES_SNAPSHOT or an
-- activity may have removed what a later event continues.
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

comment on function agui_internal.repaired_events(json) is
    'Adds the events that the life cycle of runs requires: a beginning after an end, and if a run '
    'begins with another event; an end before a RUN_STARTED within a run; and the ends and starts '
    'of what is open there. The result has the same meaning, and the verifier of the client '
    'accepts it if nothing else is wrong. Events that follow the rules are returned unchanged.';

revoke execute on function agui_internal.repaired_events(json) from public;
