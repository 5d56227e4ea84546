create or replace function agui.head(thread_id text, scope text default '')
returns text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (agui_internal.find_run(thread_id, null, scope)).run_id
$$;

comment on function agui.head(text, text) is
    'Returns the id of the head of a thread: the run that began last. A new run that names no '
    'parent continues from it. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.head(text, text) from public;
