-- With the rights of the owner: a role learns only about itself. Policies depend on this view, so
-- while row-level security is on it can be replaced but not dropped.
create or replace view agui_internal.caller as
select
    coalesce(tenant.low, agui_internal.pool_first_key()) as low,
    coalesce(tenant.high, agui_internal.pool_last_key()) as high
from agui_internal.tenant as tenant
where tenant.role_name = current_user;

comment on view agui_internal.caller is
    'The range of thread keys that the current role may see, in one row; no row: it is mapped to '
    'no scope. The policies of row-level security use it. Functions that write use '
    'agui_internal.own_key, because in them current_user is the owner.';
comment on column agui_internal.caller.low is
    'The smallest key; null: a pool that has not set agui.scope.';
comment on column agui_internal.caller.high is
    'The greatest key; null: a pool that has not set agui.scope.';
