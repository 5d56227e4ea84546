create or replace function agui.restore(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run      agui.run := agui_internal.find_run(thread_id, run_id, scope);
    fold     agui_internal.fold := agui_internal.fold_at(run, at_seq, at_time);
    restored text;
begin
    -- Put together as text: the parts are already JSON and keep their spelling. concat copies large
    -- ones once, operators would do so one after the other.
    restored := concat(
        '{"threadId":', to_json(thread_id),
        ',"runId":', to_json(run.run_id),
        ',"seq":', fold.through_seq,
        ',"status":', to_json(run.status),
        ',"messages":[', array_to_string(fold.bodies, ','), ']',
        ',"state":', fold.state,
        ',"interrupts":', fold.interrupts,
        '}'
    );
    fold := null;
    return restored;
end
$$;

comment on function agui.restore(text, text, bigint, timestamptz, text) is
    'Returns all that a UI needs to show a conversation, as {threadId, runId, seq, status, '
    'messages, state, interrupts}, after a run (null: the head) or, for a point in the past, after '
    'event at_seq of its lineage or at at_time, whichever is earlier. seq is that of the last '
    'event included (0: none); status is the current status of the run. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.restore(text, text, bigint, timestamptz, text) from public;
