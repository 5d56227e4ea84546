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
    'Takes the mapping of a role away: while row-level security is on, it sees no threads. The role need not '
    'exist any more. Answers whether it had one. For the owner.';

revoke execute on function agui.unmap_role(name) from public;
