-- Folds what is given and its compact form, and takes a form only where both mean the same. So no stream is too odd to come out right,
-- and the rules of the compact forms (agui_internal.compact_runs) may be about ordinary streams.
--
-- All runs are tried at once, then halves until what differs is found: a long thread takes two folds, not two a run. In shape
-- snapshot only the last run is one: the list of all messages in each would make the size grow with the square of the runs.
create or replace function agui_internal.compact_step(events json, shape text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    run         record;
    originals   text[] := '{}';
    streams     text[] := '{}';  -- the best compact form of each run that is no snapshot
    others      text[] := '{}';  -- and the next best one, null where there is none
    heads       text[] := '{}';  -- the parts of a run around its snapshots, null where there are none
    tails       text[] := '{}';
    states      text[] := '{}';
    has_changes boolean[] := '{}';

    compacted   text[] := '{}';
    forms       text[];
    form        text;
    first_run   int := 1;
    last_run    int;
    at_once     int;
    streamed    int;   -- how many runs come in shape stream
    truth       agui_internal.fold;  -- what the originals mean
    replica     agui_internal.fold;  -- and what their compact forms mean
    truth_end   agui_internal.fold;
    replica_end agui_internal.fold;
    reopening   text;
    gives_away  boolean;
    fits        boolean;
begin
    for run in select * from agui_internal.compact_runs(events) loop
        originals := array_append(originals, run.original);
        streams := array_append(streams, coalesce(run.behind_snapshot, run.stream, run.original));
        others := array_append(others, case when run.behind_snapshot is not null then run.stream end);
        heads := array_append(heads, run.head);
        tails := array_append(tails, run.tail);
        states := array_append(states, run.state);
        has_changes := array_append(has_changes, run.changes_messages);
    end loop;

    streamed := cardinality(originals) - (shape = 'snapshot')::int;
    at_once := streamed;

    while first_run <= cardinality(originals) loop
        last_run := greatest(first_run, least(first_run + at_once - 1, streamed));
        truth_end := agui_internal.fold_given(truth, array_to_string(originals[first_run : last_run], ','));
        -- A list of messages may give what is open in chunks to another agent than the chunks do.
        gives_away := exists (
            select from json_array_elements(agui_internal.json_guard(truth_end.lanes)::json) as lane
            cross join lateral agui_internal.repair_subject(
                truth_end, case lane ->> 'kind' when 'tool' then 2 else 1 end, agui_internal.json_string_token((lane -> 'id')::text)
            ) as subject
            where subject.is_there
            and agui_internal.json_string_token(agui_internal.json_string_member(lane, 'lane'))
                <> coalesce(agui_internal.json_string_token(subject.owner), '')
        );
        if gives_away and others[last_run] is not null then
            streams[last_run] := others[last_run];
            others[last_run] := null;
        end if;
        forms := array[array_to_string(streams[first_run : last_run], ',')];
        if first_run = last_run then
            forms := forms || others[first_run] || originals[first_run];
            if first_run > streamed and heads[first_run] is not null and not gives_away then
                forms := agui_internal.compact_snapshots(
                    heads[first_run], tails[first_run], states[first_run], has_changes[first_run], truth, truth_end
                ) || forms;
            end if;
        end if;

        -- Chunks that are open at the end have become messages that are complete: open them again for the chunks to come.
        reopening := agui_internal.compact_lanes(truth_end);

        foreach form in array forms loop
            continue when form is null;
            if form <> originals[first_run] then
                form := concat_ws(',', nullif(form, ''), reopening);
            end if;
            replica_end := agui_internal.fold_given(replica, form);
            fits := agui_internal.fold_difference(truth_end, replica_end) is null;
            exit when fits;
        end loop;

        if fits then
            compacted := array_append(compacted, nullif(form, ''));
            truth := truth_end;
            replica := replica_end;
            first_run := last_run + 1;
            at_once := at_once * 2;
        elsif last_run > first_run then
            at_once := (last_run - first_run + 1) / 2;
        else
            -- What stands before means the same in another way (two messages that are one in the original, say).
            return events;
        end if;
    end loop;

    return '[' || array_to_string(compacted, ',') || ']';
end
$function$;

comment on function agui_internal.compact_step(json, text) is
    'The events in fewer ones, in a shape, run by run; each in the best form that means the same. See agui.compact_events.';

revoke execute on function agui_internal.compact_step(json, text) from public;
