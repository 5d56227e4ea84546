create or replace function agui_internal.rows_of_thread(made jsonb)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case when made ? 'erased_key' then 'stored.erased_key = agui_internal.erasure_key($1)' else 'stored.thread_key = $1' end
$$;

comment on function agui_internal.rows_of_thread(jsonb) is
    'The condition for rows called stored that belong to the thread with the key $1, in a table of '
    'agui_internal.archived_tables, given its column made.';

revoke execute on function agui_internal.rows_of_thread(jsonb) from public;
