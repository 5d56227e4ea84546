create or replace view agui.tenant as
select
    tenant.role_name,
    tenant.scope,
    case when tenant.is_operator then 'operator' when tenant.is_pool then 'pool' else 'tenant' end as kind
from agui_internal.tenant as tenant
where tenant.role_name = current_user
    or exists (
        select
        from agui_internal.tenant as own
        where own.role_name = current_user and own.is_operator
    )
    or (select agui_internal.is_exempt(current_user));

comment on view agui.tenant is
    'The mappings of roles to scopes, in effect while row-level security is on. Operators and the '
    'owner see all mappings, other roles their own.';
comment on column agui.tenant.role_name is 'The role.';
comment on column agui.tenant.scope is 'Its scope; null: see kind.';
comment on column agui.tenant.kind is
    'tenant: the role has the scope in the column scope. pool: the scope in the setting '
    'agui.scope. operator: all scopes.';
