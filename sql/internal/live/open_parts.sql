create or replace function agui_internal.open_parts(run agui.run, until bigint default null)
returns setof agui_internal.open_part
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with opening (opens, closes, named_by) as (
        values
            ('TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'messageId'),
            ('TOOL_CALL_START', 'TOOL_CALL_END', 'toolCallId'),
            ('REASONING_MESSAGE_START', 'REASONING_MESSAGE_END', 'messageId'),
            ('REASONING_START', 'REASONING_END', 'messageId'),
            ('THINKING_TEXT_MESSAGE_START', 'THINKING_TEXT_MESSAGE_END', null),
            ('THINKING_START', 'THINKING_END', null),
            ('STEP_STARTED', 'STEP_FINISHED', 'stepName'),
            ('SUBAGENT_STARTED', 'SUBAGENT_ERROR', 'subagentRunId')
    ),
    event as (
        select
            batch.first_seq + field.position - 1 as seq,
            -- A subagent has two possible ends.
            case field.type when 'SUBAGENT_FINISHED' then 'SUBAGENT_ERROR' else field.type end as type,
            json_build_object(
                'messageId', field."messageId", 'toolCallId', field."toolCallId", 'stepName', field."stepName", 'subagentRunId', field."subagentRunId"
            ) as names,
            -- A step is identified by its name and its subagent, the others by their id alone.
            case when field.type like 'STEP%' then field."subagentRunId" end as owner,
            field.event
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui.batch as stored
            where stored.thread_key = run.thread_key
                and stored.run_no = run.run_no
                and stored.first_seq >= run.first_seq
                and (until is null or stored.first_seq <= until)
                -- Most batches contain only pieces. A type may be spelled with escapes.
                and (stored.events::text ~ '_(START|END|FINISHED|ERROR)' or strpos(stored.events::text, '\u00') > 0)
            offset 0
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events)
                as (type text, "messageId" text, "toolCallId" text, "stepName" text, "subagentRunId" text),
            json_array_elements(batch.events)
        ) with ordinality as field (type, "messageId", "toolCallId", "stepName", "subagentRunId", event, position)
        where field.type ~ '^(TEXT_MESSAGE|TOOL_CALL|REASONING|REASONING_MESSAGE|THINKING|THINKING_TEXT_MESSAGE|STEP|SUBAGENT)_(START|END|STARTED|FINISHED|ERROR)$'
            and (until is null or batch.first_seq + field.position - 1 <= until)
    ),
    part as (
        select
            opening.opens,
            opening.closes,
            opening.named_by,
            event.names ->> opening.named_by as name,
            event.owner,
            max(event.seq) filter (where event.type = opening.opens) as opened_at,
            max(event.seq) filter (where event.type = opening.closes) as closed_at
        from event
        join opening on event.type in (opening.opens, opening.closes)
        group by 1, 2, 3, 4, 5
    )
    select part.opens, part.closes, part.named_by, part.name, part.owner, part.opened_at, event.event
    from part
    join event on event.seq = part.opened_at
    where part.opened_at > coalesce(part.closed_at, 0)
    order by part.opened_at;
end
$$;

comment on function agui_internal.open_parts(agui.run, bigint) is
    'The messages, tool calls, reasoning, steps and subagents that a run has begun and not ended, '
    'up to a seq (null: so far), in the order in which they began. What chunks open is not '
    'included: it is in the fold.';

revoke execute on function agui_internal.open_parts(agui.run, bigint) from public;
