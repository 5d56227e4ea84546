create or replace view agui_internal.monitored as
select counted.low, counted.high
from (
    select '00000000-0000-0000-0000-000000000000'::uuid as low, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid as high
    where not agui_internal.has_row_security()
        or pg_has_role('pg_monitor', 'usage')
        or agui_internal.is_exempt(current_user)
    union all
    select caller.low, caller.high
    from agui_internal.caller as caller
) as counted
order by counted.low
limit 1;

comment on view agui_internal.monitored is
    'The range of thread keys that agui.stats and agui.lag count for the current role, in one row '
    'or none: all keys without row-level security and for members of pg_monitor, else those that '
    'the role may see.';
comment on column agui_internal.monitored.low is 'The smallest key.';
comment on column agui_internal.monitored.high is 'The greatest key.';
