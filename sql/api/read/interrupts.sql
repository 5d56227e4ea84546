create or replace function agui.interrupts(
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
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select (agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time)).interrupts::json
$$;

comment on function agui.interrupts(text, text, bigint, timestamptz, text) is
    'Returns the open interrupts, as a JSON array, after a run (null: the head) or, for a point in '
    'the past, after event at_seq of its lineage or at at_time, whichever is earlier. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.interrupts(text, text, bigint, timestamptz, text) from public;
