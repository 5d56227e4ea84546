create or replace function agui.keep_agent_error(
    thread_id    text,
    run_id       text,
    status       int,
    content_type text,
    body         bytea,
    scope        text default ''
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.key_to_change(thread_id, scope);
    run agui.run;
begin
    -- An erasure in progress ends first.
    perform from agui.thread as thread where thread.thread_key = key for key share;
    run := agui_internal.find_run(thread_id, run_id, scope, needs_thread => true);
    insert into agui.agent_error (thread_key, run_no, status, content_type, body, recorded_at)
    values (
        run.thread_key, run.run_no, coalesce(keep_agent_error.status, 0), coalesce(left(keep_agent_error.content_type, 200), ''),
        coalesce(substr(keep_agent_error.body, 1, 4096), ''), clock_timestamp()
    )
    on conflict on constraint agent_error_pkey do update
    set status = excluded.status,
        content_type = excluded.content_type,
        body = excluded.body,
        recorded_at = excluded.recorded_at;
end
$$;

comment on function agui.keep_agent_error(text, text, int, text, bytea, text) is
    'Keeps with a run (null: the head) what its agent answered in place of a stream of events: the status, the content '
    'type and the first 4,096 bytes of the body, whatever bytes they are. It is not a part of the log. A second call '
    'replaces it. agui.get_agent_error returns it. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.keep_agent_error(text, text, int, text, bytea, text) from public;
