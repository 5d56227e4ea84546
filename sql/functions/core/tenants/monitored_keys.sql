create or replace function agui_internal.monitored_keys(out low uuid, out high uuid)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    caller constant name := agui_internal.checked_caller_role();
begin
    if agui_internal.has_row_security() and not pg_has_role(caller, 'pg_monitor', 'usage') and not agui_internal.is_exempt(caller) then
        select * into low, high from agui_internal.own_keys();
        return;
    end if;
    low := '00000000-0000-0000-0000-000000000000';
    high := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
end
$$;

comment on function agui_internal.monitored_keys() is
    'The range of thread keys that agui.stats, agui.lag and agui.consumers count for the calling role: all keys '
    'without row-level security and for members of pg_monitor, else those that the role may see; '
    'nulls: none.';

revoke execute on function agui_internal.monitored_keys() from public;
