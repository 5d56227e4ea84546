-- nothing waits for the jobs since the last upgrade
select
    'note' as severity,
    format('%s threads may have snapshots, and statuses of runs, by the rules before the last upgrade: reads fold them from the log', waiting.threads)
        as problem,
    'let pgagui job compact and pgagui job project work (pgagui worker does); the number falls' as advice
from agui_internal.threads_of_older_rules() as waiting (threads)
where waiting.threads > 0
