create or replace function agui.tool_calls(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    scope     text default ''
)
returns setof agui.tool_call
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := agui_internal.seq_at(leaf.thread_key, at_seq, at_time);
begin
    return query
    select * from agui_internal.calls_of_fold(agui_internal.fold_at(leaf, until), leaf, until, after_seq);
end
$function$;

comment on function agui.tool_calls(text, text, bigint, timestamptz, bigint, text) is
    'Returns the tool calls of a conversation as they were after a run (null: the head) or, for a '
    'point in the past, after event at_seq of its lineage or at at_time, whichever is earlier. One '
    'row for each call, in the order in which they began; after_seq restricts the rows to calls '
    'that began after that event. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.tool_calls(text, text, bigint, timestamptz, bigint, text) from public;
