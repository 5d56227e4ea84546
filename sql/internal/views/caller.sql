-- With the rights of the owner: whoever may ask learns about itself alone. Policies depend on this view, so while row-level
-- security is on it can be replaced, but not dropped.
create or replace view agui_internal.caller as
select
    -- After a transaction that set it locally the setting reads '', so that is unset.
    case
        when tenant.is_pool then agui_internal.first_key(nullif(current_setting('agui.scope', true), ''))
        else tenant.low
    end as low,
    case
        when tenant.is_pool then agui_internal.last_key(nullif(current_setting('agui.scope', true), ''))
        else tenant.high
    end as high
from agui_internal.tenant as tenant
where tenant.role_name = agui_internal.caller_role();

comment on view agui_internal.caller is
    'The range of thread keys that the role that asks may see and change, in one row; no row: it is mapped to no scope. '
    'The policies of row-level security look here, and agui_internal.own_key.';
comment on column agui_internal.caller.low is 'The least of them; null: a pool that has not set agui.scope.';
comment on column agui_internal.caller.high is 'The greatest of them; null: a pool that has not set agui.scope.';
