-- compaction and repacking keep up
select
    'warning' as severity,
    format(
        '%s%s runs wait to be compacted, the first since %s',
        case when not lag.is_exact then 'at least ' end, lag.runs_to_compact, date_trunc('second', now() - lag.compaction_lag)
    ) as problem,
    'schedule pgagui job compact every minute, or look at its messages (deploy/README.md)' as advice
from agui.lag() as lag
where lag.compaction_lag > interval '1 hour'
union all
select
    'warning',
    format(
        '%s%s runs wait to be repacked, the first since %s',
        case when not lag.is_exact then 'at least ' end, lag.runs_to_repack, date_trunc('second', now() - lag.repack_lag)
    ),
    'schedule pgagui job repack every hour, or look at its messages (deploy/README.md)'
from agui.lag() as lag
where lag.repack_lag > interval '1 day'
