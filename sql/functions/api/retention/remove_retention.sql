create or replace function agui.remove_retention(action text, scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'remove a rule of retention');
    delete from agui.retention as rule
    where rule.action = remove_retention.action
        and rule.scope = coalesce(remove_retention.scope, '')
        and rule.is_all = (remove_retention.scope is null);
    return found;
end
$$;

comment on function agui.remove_retention(text, text) is
    'Removes a rule of agui.set_retention, of a scope or (null) for all scopes. Returns whether there '
    'was one. Requires agui_maintainer.';

revoke execute on function agui.remove_retention(text, text) from public;
