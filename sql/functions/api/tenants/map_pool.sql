create or replace function agui.map_pool(role_name name)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.map_role(role_name, null, true, false)
$$;

comment on function agui.map_pool(name) is
    'Maps a role that works for many scopes and is trusted to name the right one. While row-level '
    'security is on, the role sees and changes the threads of the scope in the setting agui.scope, '
    'for example after select set_config(''agui.scope'', ''acme'', true), which is valid until the '
    'transaction ends. If the setting is missing or empty, the role sees no threads. For the owner. '
    'Errors: 42704 unknown role.';

revoke execute on function agui.map_pool(name) from public;
