create or replace function agui.state(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    scope     text default ''
)
returns json
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select (agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq)).state::json
$$;

comment on function agui.state(text, text, bigint, text) is
    'The state that agent and UI share as of the end of a run (null: the head) or, with at_seq, of that event of its lineage. '
    'UI001: unknown thread, UI002: unknown run.';

revoke execute on function agui.state(text, text, bigint, text) from public;
