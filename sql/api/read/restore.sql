create or replace function agui.restore(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    scope     text default ''
)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    run  agui.run := agui_internal.find_run(thread_id, run_id, scope);
    fold agui_internal.fold := agui_internal.fold_at(run, at_seq);
begin
    -- Joined as text: the parts are JSON already, and stay as they are spelled.
    return (
        '{"threadId":' || to_json(thread_id)
        || ',"runId":' || to_json(run.run_id)
        || ',"seq":' || fold.through_seq
        || ',"status":' || to_json(run.status)
        || ',"messages":[' || array_to_string(fold.bodies, ',') || ']'
        || ',"state":' || fold.state
        || ',"interrupts":' || fold.interrupts
        || '}'
    )::json;
end
$$;

comment on function agui.restore(text, text, bigint, text) is
    'All that a UI needs to show a conversation again after a run (null: the head) or, with at_seq, after that event of its lineage: '
    '{threadId, runId, seq, status, messages, state, interrupts}. seq is that of the last event in it: follow the thread from there. '
    'UI001: unknown thread, UI002: unknown run.';

revoke execute on function agui.restore(text, text, bigint, text) from public;
