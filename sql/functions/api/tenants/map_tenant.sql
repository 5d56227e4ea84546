create or replace function agui.map_tenant(role_name name, scope text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if scope is null then
        raise exception using
            errcode = '22023',
            message = format('role "%s" cannot be mapped to a null scope', role_name),
            hint = 'agui.map_operator gives a role all scopes; agui.unmap_role takes them away.';
    end if;
    perform agui_internal.refuse_scope_collision(scope);
    perform agui_internal.map_role(role_name, scope, false, false);
end
$$;

comment on function agui.map_tenant(name, text) is
    'Maps a role to a scope. While row-level security is on (agui.enable_row_security), the role '
    'sees and changes only the threads of this scope. The mapping applies to the role itself, '
    'logged in or set with SET ROLE, and not to its members. A role has one mapping; the last call '
    'wins. What the role may do with its threads depends on agui_reader, agui_writer, agui_worker '
    'and agui_maintainer. For the owner. '
    'Errors: UI012 another scope has the same key, 22023 the scope is null, 42704 unknown role.';

revoke execute on function agui.map_tenant(name, text) from public;
