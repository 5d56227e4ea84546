create or replace function agui_internal.is_exempt(role_name name)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL, which caches the plan: under row-level security every call of a superuser gets
    -- here.
    perform
    from pg_roles as role
    join pg_class as protected
        on protected.oid = 'agui.thread'::regclass
    where role.rolname = is_exempt.role_name
        and (role.rolbypassrls or pg_has_role(role.oid, protected.relowner, 'usage'));
    return found;
end
$$;

comment on function agui_internal.is_exempt(name) is
    'Whether PostgreSQL exempts a role from row-level security: a superuser, a role with '
    'BYPASSRLS, the owner of the tables and roles that have its rights.';

revoke execute on function agui_internal.is_exempt(name) from public;
