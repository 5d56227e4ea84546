create or replace function agui_internal.allow_log_change(allowed boolean)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select set_config('agui.log_change', case when allowed then 'on' else '' end, true)
$$;

comment on function agui_internal.allow_log_change(boolean) is
    'Allows statements of this transaction to pass the triggers that keep the log append-only, or '
    'stops allowing it. Only for agui_internal.repack_run, agui_internal.split_input and agui.erase, '
    'each just around its own change.';

revoke execute on function agui_internal.allow_log_change(boolean) from public;
