create or replace function agui_internal.lease()
returns interval
language sql
stable
parallel safe
return make_interval(secs => agui_internal.setting_value('lease'));

comment on function agui_internal.lease() is
    'How long a run may be in progress without a sign of life before it is stale: the setting '
    'lease.';

revoke execute on function agui_internal.lease() from public;
