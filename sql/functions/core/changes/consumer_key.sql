create or replace function agui_internal.consumer_key(consumer text, scope text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if scope is null then
        perform agui_internal.refuse_unless_operator('be a consumer of all scopes');
    else
        perform agui_internal.own_thread_key(scope, '');
    end if;
    return (
        select known.consumer_key
        from agui.consumer as known
        where known.scope = coalesce(consumer_key.scope, '')
            and known.is_all = (consumer_key.scope is null)
            and known.consumer = consumer_key.consumer
    );
end
$$;

comment on function agui_internal.consumer_key(text, text) is
    'The key of a consumer of a scope, or (null) of all scopes; null: its place was never noted. 42501: '
    'row-level security is on, and the calling role does not have the scope, or not all of them.';

revoke execute on function agui_internal.consumer_key(text, text) from public;
