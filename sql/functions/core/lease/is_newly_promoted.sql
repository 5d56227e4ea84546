create or replace function agui_internal.is_newly_promoted()
returns boolean
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from agui_internal.uptime as uptime where uptime.timeline <> agui_internal.timeline())
$$;

comment on function agui_internal.is_newly_promoted() is
    'Whether the server was promoted and neither agui.keep_alive nor agui.reap has been called '
    'since. Until then the leases do not count.';

revoke execute on function agui_internal.is_newly_promoted() from public;
