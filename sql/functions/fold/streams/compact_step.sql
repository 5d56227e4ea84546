-- Folds the given events and their compact form, and uses a form only if the results are equal. So
-- every stream is compacted correctly, and the rules of the compact forms
-- (agui_internal.compact_runs) only need to cover ordinary streams.
-- All runs are tried at once, then a binary search finds what differs: a long thread takes two
-- folds, not two for each run. In shape snapshot only the last run has that shape, because a list
-- of all messages in each run would make the size grow with the square of the runs.
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
    streams     text[] := '{}';  -- the best compact form of each run without a snapshot
    others      text[] := '{}';  -- the second-best form, null if there is none
    heads       text[] := '{}';  -- the parts of a run around its snapshots, null if there are none
    tails       text[] := '{}';
    states      text[] := '{}';
    has_changes boolean[] := '{}';

    compacted   text[] := '{}';
    forms       text[];
    form        text;
    first_run   int := 1;
    last_run    int;
    at_once     int;
    streamed    int;   -- the number of runs in shape stream
    truth       agui_internal.fold;  -- the fold of the originals
    replica     agui_internal.fold;  -- the fold of their compact forms
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
        -- A list of messages may assign what is open in chunks to another agent than the chunks do.
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

        -- Chunks that are open at the end have become complete messages: reopen them for later
        -- chunks.
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
            -- The part before has the same meaning in another form (for example, two messages that
            -- are one in the original).
            return events;
        end if;
    end loop;

    return '[' || array_to_string(compacted, ',') || ']';
end
$function$;

comment on function agui_internal.compact_step(json, text) is
    'The compacted events in a shape, run by run; each run in the best form with the same meaning. '
    'See agui.compact_events.';

revoke execute on function agui_internal.compact_step(json, text) from public;
