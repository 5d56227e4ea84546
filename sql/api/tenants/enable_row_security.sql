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
            message = format('these roles have no scope, so they see no threads and change none: %s', unmapped),
            hint = 'Map each with agui.map_tenant, agui.map_pool or agui.map_operator. The jobs need an operator.';
    end if;
end
$$;

comment on procedure agui.enable_row_security() is
    'Turns row-level security on: from then on a role sees and changes the threads of the scope that it is '
    'mapped to (agui.map_tenant, agui.map_pool, agui.map_operator), and a role without a mapping none. Threads '
    'of others answer as threads that do not exist; a change of them is refused with 42501. Superusers, roles '
    'with BYPASSRLS and the owner are exempt, as PostgreSQL has it. It waits for transactions that are in '
    'progress on the tables, and keeps others waiting behind it; "pgagui migrate up --rls" does so only briefly '
    'and tries again. agui.disable_row_security() is the way back. For the owner.';

revoke execute on procedure agui.enable_row_security() from public;
