create or replace function agui.get_agent_error(thread_id text, run_id text default null, scope text default '')
returns table (status int, content_type text, body bytea, recorded_at timestamptz)
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    run agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    if has_table_privilege(agui_internal.checked_caller_role(), 'agui.agent_error', 'select') then
        return query
        select kept.status, kept.content_type, kept.body, kept.recorded_at
        from agui.agent_error as kept
        where kept.thread_key = run.thread_key and kept.run_no = run.run_no;
    end if;
end
$$;

comment on function agui.get_agent_error(text, text, text) is
    'Returns what the agent of a run (null: the head) answered in place of a stream of events, as agui.keep_agent_error '
    'kept it: one row or none. Only roles with agui_diagnoser get it; others get no row. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.get_agent_error(text, text, text) from public;
