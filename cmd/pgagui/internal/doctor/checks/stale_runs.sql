-- the writers of the runs in progress are alive
select
    'warning' as severity,
    format('%s given no sign of life within the lease, the quietest for %s',
        case lag.stale_runs when 1 then '1 run in progress has' else lag.stale_runs || ' runs in progress have' end, date_trunc('second', lag.oldest_sign_of_life))
        as problem,
    'pgagui job reap closes them; schedule it every minute' as advice
from agui.lag() as lag
where lag.stale_runs > 0
