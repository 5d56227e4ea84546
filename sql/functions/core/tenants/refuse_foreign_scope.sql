create or replace function agui_internal.refuse_foreign_scope(scope text, change text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if scope is null then
        perform agui_internal.refuse_unless_operator(change);
    else
        perform agui_internal.own_thread_key(scope, '');
    end if;
end
$$;

comment on function agui_internal.refuse_foreign_scope(text, text) is
    'Raises 42501 for a change that concerns a scope, or (null) all scopes, if row-level security is on and '
    'the calling role does not have them. change: what the role may not do, for the message.';

revoke execute on function agui_internal.refuse_foreign_scope(text, text) from public;
