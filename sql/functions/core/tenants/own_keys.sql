create or replace function agui_internal.own_keys(out low uuid, out high uuid)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    caller constant name := agui_internal.checked_caller_role();
begin
    if agui_internal.has_row_security() then
        select coalesce(tenant.low, agui_internal.pool_first_key()), coalesce(tenant.high, agui_internal.pool_last_key())
        into low, high
        from agui_internal.tenant as tenant
        where tenant.role_name = caller;
        if found or not agui_internal.is_exempt(caller) then
            return;
        end if;
    end if;
    low := '00000000-0000-0000-0000-000000000000';
    high := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
end
$$;

comment on function agui_internal.own_keys() is
    'The range of thread keys that the calling role may change: all without row-level security; '
    'nulls: none. For functions with the rights of the owner that search all scopes. For a single '
    'key, agui_internal.own_key gives a better error.';

revoke execute on function agui_internal.own_keys() from public;
