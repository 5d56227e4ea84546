create or replace function agui.run_tool_calls(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.tool_call
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until bigint;
begin
    if run.run_no is null then
        return;  -- an unknown thread, read as empty
    end if;
    until := agui_internal.seq_at(run.thread_key, at_seq, at_time);
    run.parent_no := null;  -- the run alone
    perform agui_internal.refuse_quarantined(run, until);
    return query
    select *
    from agui_internal.calls_of_fold(
        agui_internal.fold_events(
            agui_internal.fold_empty(), run.thread_key, array[run.run_no], array[run.first_seq - 1],
            array[least(coalesce(run.last_seq, until, 9223372036854775807), coalesce(until, 9223372036854775807))]
        ),
        run, until, 0, streamed => true
    );
end
$$;

comment on function agui.run_tool_calls(text, text, bigint, timestamptz, text) is
    'Returns the tool calls that events of a run (null: the head) made, in the order in which they '
    'began, as they were after the run or, for a point in the past, after event at_seq or at '
    'at_time, whichever is earlier. Reads the log of this run and no other, so the result of a call '
    'that came with a later run is not there, and calls that only a list of messages has are left '
    'out: agui.tool_calls has both. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.run_tool_calls(text, text, bigint, timestamptz, text) from public;
