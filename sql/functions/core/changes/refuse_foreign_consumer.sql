create or replace function agui_internal.refuse_foreign_consumer(scope text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if scope is null then
        perform agui_internal.refuse_unless_operator('change a consumer of all scopes');
    else
        perform agui_internal.own_thread_key(scope, '');
    end if;
end
$$;

comment on function agui_internal.refuse_foreign_consumer(text) is
    'Raises 42501 for a change of a consumer of a scope, or (null) of all scopes, if row-level security is '
    'on and the calling role does not have them.';

revoke execute on function agui_internal.refuse_foreign_consumer(text) from public;
