create or replace function agui.enable_chain(scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'enable the chain');
    insert into agui_internal.chained_scope (scope, is_all)
    values (coalesce(enable_chain.scope, ''), enable_chain.scope is null)
    on conflict do nothing;
    return found;
end
$$;

comment on function agui.enable_chain(text) is
    'Makes the logs of a scope (null: of all scopes) tamper-evident. From the next run of a thread '
    'on, each append stores a hash over its events and the previous hash, so that pgagui verify '
    '--chain finds events that were changed, removed or reordered. A chained thread stays chained. '
    'Returns whether this call enabled it. Requires agui_maintainer.';

revoke execute on function agui.enable_chain(text) from public;
