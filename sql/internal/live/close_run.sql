create or replace function agui_internal.close_run(thread_key uuid, run_no int, reason text, imported boolean default false)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    because   text;
    closing   text;
    closing_n int;
    log_end   record;
    stamp     timestamptz;
begin
    because := ',"message":' || to_json('The run was cut off: ' || reason) || ',"code":"RUN_CUT_OFF"}';

    -- What the run opened and did not end, innermost first, each with the field that its end is named by.
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
            -- A subagent ends in one of two ways.
            case field.type when 'SUBAGENT_FINISHED' then 'SUBAGENT_ERROR' else field.type end as type,
            json_build_object(
                'messageId', field."messageId", 'toolCallId', field."toolCallId", 'stepName', field."stepName", 'subagentRunId', field."subagentRunId"
            ) as names,
            -- A step is known by its name and the subagent that takes it; the others by their id alone.
            case when field.type like 'STEP%' then field."subagentRunId" end as owner
        from agui.batch as batch
        cross join lateral rows from (
            json_to_recordset(agui_internal.json_guard(batch.events::text)::json)
                as (type text, "messageId" text, "toolCallId" text, "stepName" text, "subagentRunId" text)
        ) with ordinality as field (type, "messageId", "toolCallId", "stepName", "subagentRunId", position)
        where batch.thread_key = close_run.thread_key
            and batch.run_no = close_run.run_no
            and field.type ~ '^(TEXT_MESSAGE|TOOL_CALL|REASONING|REASONING_MESSAGE|THINKING|THINKING_TEXT_MESSAGE|STEP|SUBAGENT)_(START|END|STARTED|FINISHED|ERROR)$'
    ),
    open_thing as (
        select
            opening.closes,
            opening.named_by,
            event.names ->> opening.named_by as name,
            event.owner,
            max(event.seq) filter (where event.type = opening.opens) as opened_at,
            max(event.seq) filter (where event.type = opening.closes) as closed_at
        from event
        join opening on event.type in (opening.opens, opening.closes)
        group by 1, 2, 3, 4
    ),
    ending as (
        select
            opened_at,
            '{"type":"' || closes || '"'
                || coalesce(',"' || named_by || '":' || agui_internal.json_unguard(to_json(name)::text), '')
                || coalesce(',"subagentRunId":' || agui_internal.json_unguard(to_json(owner)::text), '')
                || case closes when 'SUBAGENT_ERROR' then because else '}' end as event
        from open_thing
        where opened_at > coalesce(closed_at, 0)
    )
    select coalesce(string_agg(event, ',' order by opened_at desc) || ',', ''), count(*) + 1
    into closing, closing_n
    from ending;

    closing := '[' || closing || '{"type":"RUN_ERROR"' || because || ']';

    select batch.first_seq + batch.n - 1 as last_seq, batch.recorded_at
    into log_end
    from agui.batch as batch
    where batch.thread_key = close_run.thread_key
    order by batch.first_seq desc
    limit 1;
    stamp := case when imported then log_end.recorded_at else greatest(log_end.recorded_at, clock_timestamp()) end;

    insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
    values (close_run.thread_key, log_end.last_seq + 1, stamp, closing_n, close_run.run_no, closing::json);

    update agui.run as run
    set status = 'failed', last_seq = log_end.last_seq + closing_n, ended_at = stamp, cut_off_reason = reason
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    return log_end.last_seq + closing_n;
end
$$;

comment on function agui_internal.close_run(uuid, int, text, boolean) is
    'Ends a run in progress whose writer is gone: appends the ends of the messages, tool calls, reasoning, steps and subagents that it left open, '
    'then RUN_ERROR with the reason, so that the log stays one that AG-UI clients accept. Returns the last seq. imported: '
    'the end is dated as the last event of the log. '
    'The caller holds the thread''s lock.';

revoke execute on function agui_internal.close_run(uuid, int, text, boolean) from public;
