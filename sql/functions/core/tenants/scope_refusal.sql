create or replace function agui_internal.scope_refusal(thread_key uuid, scope text, out message text, out hint text)
language plpgsql
stable
security definer
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant agui_internal.tenant;
begin
    select mapped.* into tenant
    from agui_internal.tenant as mapped
    where mapped.role_name = agui_internal.caller_role();
    message := format('role "%s" may not change %s', agui_internal.caller_role(), case
        when scope is null then format('the thread with key %s', thread_key)
        else format('threads of scope "%s"', left(scope, 200))
    end);
    hint := case
        when tenant.role_name is null then
            'Row-level security is on, and the role has no scope. Map it with agui.map_tenant, agui.map_pool or agui.map_operator.'
        when tenant.is_pool and nullif(current_setting('agui.scope', true), '') is null then
            'The role is a pool, and agui.scope is not set: select set_config(''agui.scope'', …, true) in the same transaction.'
        when tenant.is_pool then
            'The role is a pool, and agui.scope names another scope.'
        else
            'The role has another scope (pgagui: --scope NAME).'
    end;
end
$$;

comment on function agui_internal.scope_refusal(uuid, text) is
    'The error text for a change in a scope that the calling role does not have (scope null: of '
    'the thread with a key). It reveals nothing about the contents of the scope.';

revoke execute on function agui_internal.scope_refusal(uuid, text) from public;
