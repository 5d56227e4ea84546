create or replace function agui_internal.consumer_key(consumer text, scope text)
returns uuid
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select known.consumer_key
    from agui.consumer as known
    cross join agui_internal.own_keys() as own
    where known.scope = coalesce(consumer_key.scope, '')
        and known.is_all = (consumer_key.scope is null)
        and known.consumer = consumer_key.consumer
        and own.low <= case when known.is_all then '00000000-0000-0000-0000-000000000000' else agui_internal.first_key(known.scope) end
        and own.high >= case when known.is_all then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else agui_internal.last_key(known.scope) end
$$;

comment on function agui_internal.consumer_key(text, text) is
    'The key of a consumer of a scope, or (null) of all scopes; null: there is none that the calling role '
    'sees.';

revoke execute on function agui_internal.consumer_key(text, text) from public;
