create or replace function agui_internal.close_run(
    thread_key uuid,
    run_no     int,
    reason     text,
    imported   boolean default false,
    cancelled  boolean default false
)
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
    because := case
        when cancelled then ',"message":' || to_json('The run was stopped: ' || reason) || ',"code":"RUN_STOPPED"}'
        else ',"message":' || to_json('The run was cut off: ' || reason) || ',"code":"RUN_CUT_OFF"}'
    end;

    -- Close what the run opened and did not end, innermost first. Each end names it by the field in
    -- named_by.
    select
        coalesce(string_agg(
            '{"type":"' || part.closes || '"'
                || coalesce(',"' || part.named_by || '":' || agui_internal.json_unguard(to_json(part.name)::text), '')
                || coalesce(',"subagentRunId":' || agui_internal.json_unguard(to_json(part.owner)::text), '')
                || case when part.closes = any (agui_internal.event_types('end subagent')) then because else '}' end,
            ',' order by part.opened_at desc
        ) || ',', ''),
        count(*) + 1
    into closing, closing_n
    from agui.run as run
    cross join lateral agui_internal.open_parts(run) as part
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    closing := '[' || closing || case
        when cancelled then (
            select '{"type":"RUN_FINISHED","threadId":' || to_json(thread.thread_id) || ',"runId":' || to_json(run.run_id)
                || ',"result":{"stopped":true,"reason":' || to_json(reason) || '},"outcome":{"type":"cancelled"}}'
            from agui.run as run
            join agui.thread as thread on thread.thread_key = run.thread_key
            where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no
        )
        else '{"type":"RUN_ERROR"' || because
    end || ']';

    select batch.first_seq + batch.n - 1 as last_seq, batch.recorded_at, batch.hash
    into log_end
    from agui.batch as batch
    where batch.thread_key = close_run.thread_key
    order by batch.first_seq desc
    limit 1;
    stamp := case when imported then log_end.recorded_at else greatest(log_end.recorded_at, clock_timestamp()) end;

    insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, hash)
    select
        run.thread_key, log_end.last_seq + 1, stamp, closing_n, run.run_no, closing::json,
        agui_internal.next_link(log_end.hash, log_end.last_seq + 1, closing_n, stamp, run.run_id, closing::json)
    from agui.run as run
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    update agui.run as run
    set status = case when cancelled then 'cancelled' else 'cut_off' end,
        last_seq = log_end.last_seq + closing_n, end_seq = log_end.last_seq + closing_n, ended_at = stamp,
        cut_off_reason = case when not cancelled then reason end,
        changed_in = pg_current_xact_id()
    where run.thread_key = close_run.thread_key and run.run_no = close_run.run_no;

    perform agui_internal.note_activity(thread_key, stamp);
    return log_end.last_seq + closing_n;
end
$$;

comment on function agui_internal.close_run(uuid, int, text, boolean, boolean) is
    'Ends a run in progress whose writer is gone: appends the ends of the messages, tool calls, '
    'reasoning, steps and subagents that it left open, then RUN_ERROR with the reason, so that '
    'AG-UI clients still accept the log. cancelled: the run was requested to stop, so it ends with '
    'RUN_FINISHED, whose outcome is cancelled. Returns the last seq. imported: the end gets the time of '
    'the last event of the log. The caller holds the lock of the thread.';

revoke execute on function agui_internal.close_run(uuid, int, text, boolean, boolean) from public;
