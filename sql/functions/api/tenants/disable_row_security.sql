create or replace procedure agui.disable_row_security()
language sql
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.set_row_security(false)
$$;

comment on procedure agui.disable_row_security() is
    'Turns row-level security off: every role that may read or write can do so in all scopes. The '
    'mappings of roles are kept for the next agui.enable_row_security(). For the owner.';

revoke execute on procedure agui.disable_row_security() from public;
