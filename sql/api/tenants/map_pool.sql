create or replace function agui.map_pool(role_name name)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.map_role(role_name, null, true, false)
$$;

comment on function agui.map_pool(name) is
    'Maps a role that works for many scopes, and is trusted to name the right one: while row-level security is '
    'on, it sees and changes the threads of the scope that the setting agui.scope names, as in select '
    'set_config(''agui.scope'', ''acme'', true), which counts until the transaction ends. Without it, and when '
    'it is '''', the role sees none. For the owner. '
    'Errors: 42704 there is no such role.';

revoke execute on function agui.map_pool(name) from public;
