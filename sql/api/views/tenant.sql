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
    'Which role has which scope while row-level security is on: for operators and the owner all mappings, for others their own.';
comment on column agui.tenant.role_name is 'The role.';
comment on column agui.tenant.scope is 'Its scope; null: see kind.';
comment on column agui.tenant.kind is
    'tenant: it has the scope. pool: it has the scope that the setting agui.scope names. operator: it has all scopes.';
