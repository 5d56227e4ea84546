create or replace procedure agui.enable_row_security()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    unmapped text;
begin
    perform agui_internal.set_row_security(true);

    select string_agg(quote_ident(role.rolname), ', ' order by role.rolname) into unmapped
    from pg_roles as role
    where role.rolcanlogin
        and pg_has_role(role.oid, 'agui_reader', 'usage')
        and not agui_internal.is_exempt(role.rolname)
        and not exists (select from agui_internal.tenant as tenant where tenant.role_name = role.rolname);
    if unmapped is not null then
        raise warning using
            message = format('roles without a scope, which can see and change no threads: %s', unmapped),
            hint = 'Map each with agui.map_tenant, agui.map_pool or agui.map_operator. The jobs need an operator.';
    end if;
end
$$;

comment on procedure agui.enable_row_security() is
    'Turns row-level security on: from now on a role sees and changes only the threads of the '
    'scope that it is mapped to (agui.map_tenant, agui.map_pool, agui.map_operator), and a role '
    'without a mapping none. Reads treat threads of other scopes as missing; changes of them fail '
    'with 42501. Superusers, roles with BYPASSRLS and the owner are exempt, as usual in '
    'PostgreSQL. The call waits for transactions in progress on the tables and blocks others '
    'behind it. "pgagui migrate up --rls" waits only briefly and retries. '
    'agui.disable_row_security() reverts it. For the owner.';

revoke execute on procedure agui.enable_row_security() from public;
