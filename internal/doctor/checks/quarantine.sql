-- no run is in quarantine
select
    'warning' as severity,
    format(
        '%s has failed %s times at run %s of thread %s: %s',
        quarantine.job,
        quarantine.attempts,
        coalesce(quarantine.run_id, 'number ' || quarantine.run_no),
        coalesce(quarantine.thread_id, quarantine.thread_key::text),
        coalesce(quarantine.error, 'it was killed, or ran out of memory or time')
    ) as problem,
    'pgagui verify THREAD says whether the log is damaged; once the cause is gone: pgagui compact --retry, pgagui repack --retry' as advice
from agui.quarantine as quarantine
order by quarantine.failed_at
limit 20
