-- the writers of the runs in progress are alive
select
    'warning' as severity,
    format('%s runs in progress have given no sign of life within the lease, the quietest for %s', lag.stale_runs, date_trunc('second', lag.oldest_sign_of_life))
        as problem,
    'pgagui reap closes them; schedule it every minute' as advice
from agui.lag() as lag
where lag.stale_runs > 0
