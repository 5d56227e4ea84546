create or replace function agui.unmap_role(role_name name)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui_internal.tenant as tenant
    where tenant.role_name = unmap_role.role_name;
    return found;
end
$$;

comment on function agui.unmap_role(name) is
    'Removes the mapping of a role. While row-level security is on, the role sees no threads. The '
    'role does not need to exist any more. Returns whether it had a mapping. For the owner.';

revoke execute on function agui.unmap_role(name) from public;
