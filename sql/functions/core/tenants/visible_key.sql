create or replace function agui_internal.visible_key(thread_key uuid)
returns uuid
language plpgsql
stable
security definer
-- Every append calls it, and pinning the search path would take a third of its time. So every name
-- is qualified.
as $$
declare
    caller pg_catalog.name;
    named  pg_catalog.text;  -- the scope that a pool names
begin
    if not agui_internal.has_row_security() then
        return thread_key;
    end if;
    caller := agui_internal.checked_caller_role();
    named := pg_catalog.current_setting('agui.scope', true);
    if named operator(pg_catalog.=) '' then  -- the value after a transaction that set it locally
        named := null;
    end if;
    perform
    from agui_internal.tenant as tenant
    where tenant.role_name operator(pg_catalog.=) caller
        and visible_key.thread_key operator(pg_catalog.>=) coalesce(tenant.low, agui_internal.first_key(named))
        and visible_key.thread_key operator(pg_catalog.<=) coalesce(tenant.high, agui_internal.last_key(named));
    if found or thread_key is not null and agui_internal.is_exempt(caller) then
        return thread_key;
    end if;
    return null;
end
$$;

comment on function agui_internal.visible_key(uuid) is
    'The key of a thread, which need not exist; null if row-level security is on and the calling '
    'role does not have the scope of the thread. For functions with the rights of the owner, to '
    'which policies do not apply.';

revoke execute on function agui_internal.visible_key(uuid) from public;
