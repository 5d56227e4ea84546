-- The verifier of a client assigns the messages in a list to the agents that the list names, until
-- the next run starts. In the log, messages of earlier runs are assigned to no agent. So while the
-- run may still get events, the history is placed in an earlier run, unless it is only what the
-- main agent said in this one.
--
-- A history that is larger than one part comes in several. A list of messages removes what it does
-- not name, so the first part alone has one. The input of a RUN_STARTED appends the messages of the
-- others, each as it is; it leaves out a message whose id the client has, so the result of a tool
-- that has the id of another message comes as the event that makes it.
create or replace function agui_internal.replay_part(
    thread_id text,
    run agui.run,
    until bigint,
    customs_of text,
    part int,
    part_bytes int,
    out events text,
    out next_part int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    fold     agui_internal.fold := agui_internal.fold_at(run, until);
    thread   constant text := '"threadId":' || to_json(thread_id);
    has_ended constant boolean := run.last_seq is not null and coalesce(run.end_seq, run.last_seq) <= coalesce(until, run.last_seq);
    parent   text;   -- the id of the parent run
    ending   text;   -- the event that ended the run
    opened   text;   -- what the run has open
    claimed  text;   -- the owners of its messages
    history  text;
    is_apart boolean := false;
    earlier  text;   -- the ids of the earlier run
    outcome  text;   -- interrupts that the end of the run does not state: an earlier run ended with them
    questions text;  -- what the run asks, as it asked: a client answers another question in another way
    asked_before text;  -- what an earlier run asked
    asking   text;   -- the id of that run
    pieces   int[];  -- the last messages of the parts before the last one; null: one part has all
    state    record; -- the events of the state, if the history has several parts
    left_out text;   -- the failure that says what no client takes
begin
    select ancestor.run_id into parent
    from agui.run as ancestor
    where ancestor.thread_key = run.thread_key and ancestor.run_no = run.parent_no;
    if octet_length(fold.state) + (select coalesce(sum(octet_length(body) + 1), 0) from unnest(fold.bodies) as body) > part_bytes then
        earlier := thread || ',"runId":' || to_json(coalesce(parent, run.run_id));
        pieces := agui_internal.message_pieces(fold.bodies, part_bytes);
        next_part := part + 1;
        if part <= cardinality(pieces) then
            events := agui_internal.messages_part(fold, coalesce(pieces[part - 1], 0) + 1, pieces[part], earlier);
            return;
        end if;
        state := agui_internal.state_events(fold.state, part_bytes);
        if part <= cardinality(pieces) + cardinality(state.events) then
            events := concat_ws(
                ',', '{"type":"RUN_STARTED",' || earlier || '}', state.events[part - cardinality(pieces)], '{"type":"RUN_FINISHED",' || earlier || '}'
            );
            return;
        end if;
        next_part := null;
        left_out := agui_internal.too_large_failure(fold, pieces[1], state.too_large);
    end if;

    if has_ended then
        if run.end_seq is null then  -- agui_internal.find_ends has not found it yet
            run.end_seq := (agui_internal.last_end(run.thread_key, run.run_no)).seq;
        end if;
        select element.payload into ending
        from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
        where batch.first_seq + element.position - 1 = run.end_seq;
        opened := agui_internal.compact_lanes(fold);
    else
        opened := agui_internal.reopening_events(run, until, fold);
        if opened is null and pieces is null then
            return;
        end if;
        claimed := agui_internal.claimed_messages(run, until, fold);
        is_apart := parent is not null or strpos(opened || array_to_string(fold.bodies, ''), 'subagentRunId') > 0;
    end if;

    questions := agui_internal.question_events(fold.interrupts);
    if not agui_internal.json_equal(fold.interrupts, (agui_internal.fold_given(null, coalesce(ending, ''))).interrupts) then
        if questions is null then
            outcome := ',"outcome":{"type":"interrupt","interrupts":' || fold.interrupts || '}';
        elsif run.status <> 'interrupted' or not has_ended then
            asked_before := questions;
            asking := (agui_internal.asking_run(run)).run_id;
        end if;
    end if;
    questions := case when asked_before is null then questions end;
    if questions is null and strpos(fold.lanes, '"question"') > 0 then
        questions := agui_internal.question_events((
            select json_agg(lane.value -> 'interrupt')::text from json_array_elements(fold.lanes::json) as lane (value)
        ));
    end if;
    -- A client is not asked once more what is answered.
    if customs_of is not null and exists (
        select
        from agui.run as next
        where next.thread_key = run.thread_key and next.parent_no = run.run_no and next.status not in ('failed', 'cut_off')
    ) then
        questions := null;
    end if;
    if is_apart or coalesce(outcome, asked_before) is not null then
        earlier := thread || ',"runId":' || to_json(coalesce(asking, parent, run.run_id));
    else
        earlier := null;
    end if;

    if pieces is null then
        history := concat_ws(
            ',',
            agui_internal.clearing_event(fold.message_ids, fold.roles),
            '{"type":"MESSAGES_SNAPSHOT","messages":[' || array_to_string(fold.bodies, ',') || ']}',
            '{"type":"STATE_SNAPSHOT","snapshot":' || fold.state || '}'
        );
    end if;
    events := concat_ws(
        ',',
        '{"type":"RUN_STARTED",' || earlier || '}',
        case when is_apart then history end,
        asked_before,
        '{"type":"RUN_FINISHED",' || earlier || coalesce(outcome, '') || '}',
        '{' || concat_ws(
            ',',
            '"type":"RUN_STARTED"',
            thread,
            '"runId":' || to_json(run.run_id),
            '"parentRunId":' || to_json(parent),
            '"input":{' || thread || ',"runId":' || to_json(run.run_id) || ',"messages":[' || claimed || '],"tools":[],"context":[]}'
        ) || '}',
        case when not is_apart then history end,
        nullif(agui_internal.custom_events(run, until, customs_of), ''),
        case when left_out is null then nullif(opened, '') end,
        questions,
        coalesce(left_out, ending)
    );
    -- A list of messages cannot express that two of them are one message, which later events change
    -- at both places.
    if pieces is null
        and exists (select from unnest(fold.message_nos) as place (no) where place.no is not null group by place.no having count(*) > 1)
        and agui_internal.fold_difference(fold, agui_internal.fold_given(null, events)) is not null
    then
        events := null;
    end if;
end
$function$;

comment on function agui_internal.replay_part(text, agui.run, bigint, text, int, int) is
    'A part of the history of the lineage of a run, up to a seq (null: all of it), as a snapshot: '
    'events (JSON texts, joined by commas), and the number of the next part (null: this is the last '
    'one). A part has part_bytes at most, unless one message or value of the state is larger. The last part starts the run, with the '
    'CUSTOM events of customs_of (agui_internal.custom_events; null: none, and the questions also if '
    'they are answered), what is open, and the end. events is null if a list of messages cannot express the meaning of the lineage.';

revoke execute on function agui_internal.replay_part(text, agui.run, bigint, text, int, int) from public;
