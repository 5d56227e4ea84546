create or replace function agui_internal.lease()
returns interval
language sql
stable
parallel safe
return coalesce(nullif(current_setting('agui.lease', true), ''), '5 minutes')::interval;

comment on function agui_internal.lease() is
    'How long a run may be in progress without a sign of life before it counts as stale: the setting agui.lease, 5 minutes unless set.';

revoke execute on function agui_internal.lease() from public;
