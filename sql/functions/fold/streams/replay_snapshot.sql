-- The verifier of a client assigns the messages in a list to the agents that the list names, until
-- the next run starts. In the log, messages of earlier runs are assigned to no agent. So while the
-- run may still get events, the history is placed in an earlier run, unless it is only what the
-- main agent said in this one.
create or replace function agui_internal.replay_snapshot(thread_id text, run agui.run, until bigint)
returns json
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    fold     agui_internal.fold := agui_internal.fold_at(run, until);
    thread   constant text := '"threadId":' || to_json(thread_id);
    has_ended constant boolean := run.last_seq is not null and run.last_seq <= coalesce(until, run.last_seq);
    parent   text;   -- the id of the parent run
    ending   text;   -- the event that ended the run
    opened   text;   -- what the run has open
    claimed  text;   -- the owners of its messages
    history  text;
    is_apart boolean := false;
    earlier  text;   -- the ids of the earlier run
    outcome  text;   -- interrupts that the end of the run does not state: an earlier run ended with them
    events   text;
begin
    select ancestor.run_id into parent
    from agui.run as ancestor
    where ancestor.thread_key = run.thread_key and ancestor.run_no = run.parent_no;

    if has_ended then
        if run.end_seq is null then  -- agui_internal.find_ends has not found it yet
            select max(event.seq) into run.end_seq
            from agui_internal.life_cycle(run.thread_key, run.run_no) as event
            where event.type <> 'RUN_STARTED' and not event.is_late;
        end if;
        select element.payload into ending
        from agui_internal.batch_with(run.thread_key, run.end_seq) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
        where batch.first_seq + element.position - 1 = run.end_seq;
        opened := agui_internal.compact_lanes(fold);
    else
        opened := agui_internal.reopening_events(run, until, fold);
        if opened is null then
            return null;
        end if;
        claimed := agui_internal.claimed_messages(run, until, fold);
        is_apart := parent is not null or strpos(opened || array_to_string(fold.bodies, ''), 'subagentRunId') > 0;
    end if;

    if not agui_internal.json_equal(fold.interrupts, (agui_internal.fold_given(null, coalesce(ending, ''))).interrupts) then
        outcome := ',"outcome":{"type":"interrupt","interrupts":' || fold.interrupts || '}';
    end if;
    if is_apart or outcome is not null then
        earlier := thread || ',"runId":' || to_json(coalesce(parent, run.run_id));
    end if;

    history := concat_ws(
        ',',
        -- A client replaces all of its messages with an id in the list by the one in the list. If
        -- ids repeat (frameworks give the result of a tool the id of the call), a first list clears
        -- what is there.
        case when exists (
            select from unnest(fold.message_ids) as place (id) where place.id is not null group by place.id having count(*) > 1
        ) then
            '{"type":"MESSAGES_SNAPSHOT","messages":['
            || case when 'reasoning' = any (fold.roles) then '{"id":"cleared","role":"reasoning","content":""}' else '' end
            || '],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}}'
        end,
        '{"type":"MESSAGES_SNAPSHOT","messages":[' || array_to_string(fold.bodies, ',') || ']}',
        '{"type":"STATE_SNAPSHOT","snapshot":' || fold.state || '}'
    );
    events := concat_ws(
        ',',
        '{"type":"RUN_STARTED",' || earlier || '}',
        case when is_apart then history end,
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
        nullif(opened, ''),
        ending
    );
    -- A list of messages cannot express that two of them are one message, which later events change
    -- at both places.
    if exists (select from unnest(fold.message_nos) as place (no) where place.no is not null group by place.no having count(*) > 1)
        and agui_internal.fold_difference(fold, agui_internal.fold_given(null, events)) is not null
    then
        return null;
    end if;
    return '[' || events || ']';
end
$function$;

comment on function agui_internal.replay_snapshot(text, agui.run, bigint) is
    'The result of agui.replay in shape snapshot for the lineage of a run, up to a seq (null: all '
    'of it), as a JSON array; null if a list of messages cannot express the meaning of the '
    'lineage.';

revoke execute on function agui_internal.replay_snapshot(text, agui.run, bigint) from public;
