create or replace function agui_internal.map_role(role_name name, scope text, is_pool boolean, is_operator boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    least_key    constant uuid := case when is_operator then '00000000-0000-0000-0000-000000000000' else agui_internal.first_key(scope) end;
    greatest_key constant uuid := case when is_operator then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else agui_internal.last_key(scope) end;
begin
    if not exists (select from pg_roles as role where role.rolname = map_role.role_name) then
        raise exception using
            errcode = '42704',
            message = format('role "%s" does not exist, so it cannot be mapped', role_name),
            hint = 'A mapping is for one role, by its exact name. Create the role first.';
    end if;
    insert into agui_internal.tenant as tenant (role_name, scope, is_pool, is_operator, low, high)
    values (map_role.role_name, map_role.scope, map_role.is_pool, map_role.is_operator, least_key, greatest_key)
    on conflict on constraint tenant_pkey do update
    set scope = excluded.scope,
        is_pool = excluded.is_pool,
        is_operator = excluded.is_operator,
        low = excluded.low,
        high = excluded.high;
    if agui_internal.is_exempt(role_name) then
        raise warning using
            message = format('row-level security does not apply to role "%s", whatever it is mapped to', role_name),
            hint = 'It is a superuser, has BYPASSRLS, or has the rights of the owner of the tables. Use another role.';
    end if;
end
$$;

comment on function agui_internal.map_role(name, text, boolean, boolean) is
    'Maps a role to a scope, as a pool, or as an operator, in place of its previous mapping. '
    '42704: there is no such role.';

revoke execute on function agui_internal.map_role(name, text, boolean, boolean) from public;
