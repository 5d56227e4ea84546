create or replace function agui.status(thread_id text, run_id text default null, scope text default '')
returns agui.run_status
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run    agui.run := agui_internal.find_run(thread_id, run_id, scope);
    status agui.run_status;
    why    agui_internal.run_end := agui_internal.why_ended(run);
begin
    status.run_id := run.run_id;
    status.parent_run_id := (
        select parent.run_id
        from agui.run as parent
        where parent.thread_key = run.thread_key and parent.run_no = run.parent_no
    );
    status.status := run.status;
    status.first_seq := run.first_seq;
    status.last_seq := run.last_seq;
    if run.status = 'running' then
        select batch.first_seq + batch.n - 1
        into status.last_seq
        from agui.batch as batch
        where batch.thread_key = run.thread_key and batch.run_no = run.run_no
        order by batch.first_seq desc
        limit 1;
    end if;
    status.started_at := run.started_at;
    status.ended_at := run.ended_at;
    status.alive_at := agui_internal.last_seen_at(run);
    status.is_stale := agui_internal.is_stale(run);
    status.has_heartbeat := run.has_heartbeat;
    status.stop_requested_at := run.stop_requested_at;
    status.stop_reason := why.stop_reason;
    status.cut_off_reason := why.cut_off_reason;
    status.error_code := why.error_code;
    status.error_message := why.error_message;
    return status;
end
$$;

comment on function agui.status(text, text, text) is
    'Returns the status of a run (null: the head): whether it is in progress, and whether its '
    'writer is still alive according to its last sign of life; or how and why it ended. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.status(text, text, text) from public;
