create or replace function agui_internal.webhook_body(run agui.run, kind text, at timestamptz)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
-- So that times are written in UTC.
set timezone = 'UTC'
as $$
begin
    return (
        select json_strip_nulls(json_build_object('type', kind, 'timestamp', at, 'data', json_build_object(
            'scope', thread.scope, 'threadId', thread.thread_id, 'runId', run.run_id, 'parentRunId', parent.run_id, 'status', run.status,
            'error', case
                when kind = 'run.failed' then json_build_object('code', why.error_code, 'message', coalesce(why.error_message, ''))
            end,
            'interrupts', case
                when kind = 'run.waiting' and run.status <> 'finished' then (
                    select coalesce(json_agg(json_build_object(
                        'id', left(asked.interrupt_id, 1000), 'reason', left(asked.reason, 1000), 'toolCallId', left(asked.tool_call_id, 1000),
                        'expiresAt', asked.expires_at
                    ) order by asked.place), '[]')
                    from agui_internal.open_interrupts(run) as asked
                    where asked.place <= 100
                )
            end,
            'calls', case
                when kind = 'run.waiting' then (
                    select json_agg(json_build_object('toolCallId', left(asked.tool_call_id, 1000), 'tool', left(agui_internal.tool_of_call(asked), 1000)) order by asked.run_no, asked.place)
                    from agui.projected_interrupt as asked
                    where asked.thread_key = run.thread_key and asked.is_open and asked.is_call
                        -- A run that failed leaves those open that were open before it.
                        and (asked.run_no = run.run_no or run.status <> 'finished')
                        and asked.place <= 100
                )
            end,
            'firstSeq', run.first_seq, 'lastSeq', run.last_seq, 'startedAt', run.started_at, 'endedAt', run.ended_at
        )))
        from agui.thread as thread
        left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        cross join lateral agui_internal.why_ended(run, 1000) as why
        where thread.thread_key = run.thread_key
    );
end
$$;

comment on function agui_internal.webhook_body(agui.run, text, timestamptz) is
    'The body of the request of a webhook about a run, as it is now. kind as in agui.webhook.kinds; at: when it happened.';

revoke execute on function agui_internal.webhook_body(agui.run, text, timestamptz) from public;
