create or replace function agui.set_retention(action text, older_than interval, scope text default null)
returns agui.retention
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    rule agui.retention;
begin
    perform agui_internal.refuse_foreign_scope(scope, 'set a rule of retention');
    if action is null or action not in ('archive', 'erase', 'remove_checkpoints') then
        raise exception using
            errcode = '22023',
            message = format('"%s" is no action of retention', action),
            hint = 'There are archive, erase and remove_checkpoints.';
    end if;
    if older_than <= interval '0' then
        raise exception using
            errcode = '22023',
            message = 'older_than must be more than 0: otherwise threads that are in use would be affected';
    end if;
    insert into agui.retention (scope, is_all, action, older_than)
    values (coalesce(set_retention.scope, ''), set_retention.scope is null, set_retention.action, set_retention.older_than)
    on conflict on constraint retention_pkey do update
    set older_than = excluded.older_than, set_at = excluded.set_at, set_by = excluded.set_by
    returning * into rule;
    return rule;
end
$$;

comment on function agui.set_retention(text, interval, text) is
    'Sets a rule: what agui.apply_retention does to the threads of a scope (null: of all scopes) in '
    'which nothing was appended or saved for older_than. action is archive (lists leave the thread '
    'out), remove_checkpoints (the log stays) or erase. The rule of a scope comes before the rule '
    'for all scopes; older_than null means never, so it exempts a scope. Nothing happens before '
    'agui.apply_retention is called. Requires agui_maintainer. '
    'Errors: 22023 unknown action, or not more than 0.';

revoke execute on function agui.set_retention(text, interval, text) from public;
