create or replace function agui_internal.refuse_all_scopes(caller name)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.is_exempt(caller)
        or exists (
            select
            from agui_internal.tenant as tenant
            where tenant.role_name = caller and tenant.is_operator
        )
    then
        raise exception using
            errcode = '42501',
            message = format('role "%s" has all scopes, but none of them in a trigger', caller),
            hint = 'Row-level security is on, and the trigger may be code of another role. Set a role that is mapped to one scope before the statement.';
    end if;
end
$$;

comment on function agui_internal.refuse_all_scopes(name) is
    'Raises 42501 in a trigger if row-level security is on and the calling role has all scopes.';

revoke execute on function agui_internal.refuse_all_scopes(name) from public;
