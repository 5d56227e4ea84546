create or replace function agui.malformed_events(thread_id text, run_id text default null, max_rows int default 100, scope text default '')
returns table (seq bigint, type text, problem text)
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select malformed.seq, malformed.type, malformed.problem
    from agui_internal.malformed_events_of(agui_internal.find_run(thread_id, run_id, scope)) as malformed
    limit max_rows;
end
$$;

comment on function agui.malformed_events(text, text, int, text) is
    'Returns the first max_rows events of a run (null: the head) that no client shows, because they lack a field that '
    'their type needs, such as the messageId of a TEXT_MESSAGE_START, or have it under a name of Python (message_id): seq, '
    'type and what is wrong. Reads all events of the run. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.malformed_events(text, text, int, text) from public;
