create or replace function agui_internal.heartbeat_lease()
returns interval
language sql
stable
parallel safe
return make_interval(secs => least(agui_internal.setting_value('heartbeat_lease'), agui_internal.setting_value('lease')));

comment on function agui_internal.heartbeat_lease() is
    'The lease of a run whose writer calls agui.keep_alive: the setting heartbeat_lease, but never '
    'longer than the setting lease.';

revoke execute on function agui_internal.heartbeat_lease() from public;
