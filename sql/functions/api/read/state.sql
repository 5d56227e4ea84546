create or replace function agui.state(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns json
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (agui_internal.state_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time)).state::json
$$;

comment on function agui.state(text, text, bigint, timestamptz, text) is
    'Returns the state that agent and UI shared after a run (null: the head) or, for a point in '
    'the past, after event at_seq of its lineage or at at_time, whichever is earlier. Before the '
    'first event it is {}. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.state(text, text, bigint, timestamptz, text) from public;
