create or replace function agui.map_operator(role_name name)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.map_role(role_name, null, false, true)
$$;

comment on function agui.map_operator(name) is
    'Maps a role to all scopes, present and future. Use it for the role of the jobs, of a recorder '
    'that serves all tenants, and of support staff. For the owner. '
    'Errors: 42704 unknown role.';

revoke execute on function agui.map_operator(name) from public;
