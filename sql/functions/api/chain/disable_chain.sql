create or replace function agui.disable_chain(scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'disable the chain');
    delete from agui_internal.chained_scope as chained
    where chained.scope = coalesce(disable_chain.scope, '') and chained.is_all = (disable_chain.scope is null);
    return found;
end
$$;

comment on function agui.disable_chain(text) is
    'Reverts agui.enable_chain for a scope (null: for all scopes). Threads that are not chained '
    'stay unchained; chained threads stay chained. Returns whether the chain was enabled. Requires '
    'agui_maintainer.';

revoke execute on function agui.disable_chain(text) from public;
