create or replace function agui.remove_consumer(consumer text, scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'change a consumer of all scopes');
    delete from agui.consumer as known where known.consumer_key = agui_internal.consumer_key(remove_consumer.consumer, remove_consumer.scope);
    return found;
end
$$;

comment on function agui.remove_consumer(text, text) is
    'Removes a consumer and its place, of a scope or (null) of all scopes. Returns whether there was one. '
    'Errors: 42501 the role does not have the scope.';

revoke execute on function agui.remove_consumer(text, text) from public;
