-- row-level security is whole, and so are the mappings of roles to scopes; or it is off
with protected as (
    select
        relation.oid,
        relation.relrowsecurity and policy.oid is not null as is_on
    from pg_catalog.pg_class as relation
    join pg_catalog.pg_attribute as attribute
        on attribute.attrelid = relation.oid and attribute.attname in ('thread_key', 'erased_key', 'is_all')
    left join pg_catalog.pg_policy as policy
        on policy.polrelid = relation.oid and policy.polname = 'agui_scope'
    where relation.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relation.relkind = 'r'
),
-- Who does not see all mappings cannot tell what is wrong with them.
mapped as (
    select tenant.role_name, tenant.kind, role.oid, role.rolname is not null as exists
    from agui.tenant as tenant
    left join pg_catalog.pg_roles as role
        on role.rolname = tenant.role_name
    where agui_internal.is_exempt(current_user)
    or exists (select from agui.tenant as own where own.role_name = current_user and own.kind = 'operator')
)
select
    'error' as severity,
    format('row-level security is on, but not for %s: who may read sees threads of all scopes there', string_agg(protected.oid::regclass::text, ', ')) as problem,
    'call agui.grant_access(), or pgagui migrate up' as advice
from protected
where agui_internal.has_row_security() and not protected.is_on
having count(*) > 0
union all
select
    'error',
    format('row-level security is off for changes, but on for %s', string_agg(protected.oid::regclass::text, ', ')),
    'call agui.enable_row_security(), or call agui.disable_row_security()'
from protected
where not agui_internal.has_row_security()
and exists (select from pg_catalog.pg_policy as policy where policy.polrelid = protected.oid and policy.polname = 'agui_scope')
having count(*) > 0
union all
select
    'warning',
    format('role %I sees the threads of its scope alone, so the other checks are about no others', current_user),
    'run this as the owner, or as an operator (agui.map_operator)'
where agui_internal.has_row_security() and not exists (select from mapped) and not agui_internal.is_exempt(current_user)
union all
select
    'warning',
    format('role %I is mapped, but does not exist: the next role of this name has its scope', mapped.role_name),
    format('select agui.unmap_role(%L)', mapped.role_name)
from mapped
where not mapped.exists
union all
select
    'warning',
    format('role %I is mapped as %s, but row-level security does not apply to it: it is a superuser, has BYPASSRLS, or the rights of the owner',
        mapped.role_name, mapped.kind),
    format('use another role; select agui.unmap_role(%L)', mapped.role_name)
from mapped
where mapped.kind <> 'operator' and agui_internal.is_exempt(mapped.role_name)
union all
select
    'note',
    format('role %I has no scope, so it sees no threads and changes none', role.rolname),
    format('select agui.map_tenant(%1$L, …), agui.map_pool(%1$L) or agui.map_operator(%1$L), which the jobs need', role.rolname)
from pg_catalog.pg_roles as role
join pg_catalog.pg_roles as reader
    on reader.rolname = 'agui_reader'
where agui_internal.has_row_security()
and role.rolcanlogin
and pg_catalog.pg_has_role(role.oid, reader.oid, 'usage')
and not agui_internal.is_exempt(role.rolname)
and (exists (select from mapped) or agui_internal.is_exempt(current_user))
and not exists (select from mapped where mapped.role_name = role.rolname)
union all
select
    'warning',
    format('the policy %I lets roles see more of %s than their scope', policy.polname, policy.polrelid::regclass),
    format('drop policy %I on %s, or make it restrictive', policy.polname, policy.polrelid::regclass)
from pg_catalog.pg_policy as policy
join protected
    on protected.oid = policy.polrelid
where agui_internal.has_row_security() and policy.polname <> 'agui_scope' and policy.polpermissive and policy.polcmd in ('r', '*')
