-- no run is in quarantine
select
    'warning' as severity,
    format(
        case quarantine.cause
            when 'run' then '%s fails at run %s of thread %s, %s attempts so far%s'
            else '%s was killed or interrupted at run %s of thread %s, %s attempts so far%s'
        end,
        quarantine.job,
        coalesce(quarantine.run_id, 'number ' || quarantine.run_no),
        coalesce(quarantine.thread_id, quarantine.thread_key::text),
        quarantine.attempts,
        ': ' || quarantine.error
    ) as problem,
    case quarantine.cause
        when 'run' then 'pgagui verify THREAD says whether the log is damaged; once the cause is gone: pgagui job compact --retry, pgagui job repack --retry'
        else 'the run can be read; the logs of PostgreSQL and of the machine say what ended the job. To retry now: pgagui job compact --retry, pgagui job repack --retry'
    end as advice
from agui.quarantine as quarantine
order by quarantine.cause desc, quarantine.failed_at
limit 20
