-- Schedules all maintenance jobs with pg_cron, without a program outside the database.
--
-- Run this once with psql, in the database that has the schema agui and that cron.database_name
-- names. For another database use cron.schedule_in_database. Connect as the role that runs the
-- jobs: it needs the role agui_worker (to erase, also agui_maintainer) and usage on the schema
-- cron. A second run replaces the schedules.
--
-- pg_cron starts a job only after its previous run has ended. The jobs commit in small steps, so a
-- restart of the server loses no work. A job ends before the statement_timeout of the role, if that
-- is shorter than its max_time, and its next run continues.

create extension if not exists pg_cron;

-- Fold ended runs into snapshots, and join the small batches of runs that ended some time ago.
-- pg_cron 1.5 and later also accept '10 seconds' instead of '* * * * *'.
select cron.schedule('agui compact', '* * * * *', $$call agui.compact(max_time => '50 seconds')$$);

-- Write snapshots of long runs in progress.
select cron.schedule('agui compact running', '* * * * *', $$call agui.compact_running(max_time => '50 seconds')$$);

-- Close stale runs: those without a sign of life within the lease (agui.setting). Their followers
-- then receive the end of the run.
select cron.schedule('agui reap', '* * * * *', $$call agui.reap(max_time => '50 seconds')$$);

-- To keep the facts for questions about all conversations (docs/guides/questions.md), enable this job:
-- select cron.schedule('agui project', '* * * * *', $$call agui.project('50 seconds')$$);

-- To erase threads of all scopes 90 days after their last event, enable this job: select
-- cron.schedule('agui erase', '30 3 * * *', $$call agui.erase_older('90 days', reason =>
-- 'retention', max_time => '1 hour', scope => null)$$);

-- To do what the rules of retention say (agui.set_retention), enable this job: select
-- cron.schedule('agui retain', '30 3 * * *', $$call agui.apply_retention(max_time => '1 hour')$$);

-- pg_cron stores a row for each run of a job. Delete those older than a week.
select cron.schedule('agui history', '0 4 * * *', $$
    set search_path = pg_catalog, pg_temp;  -- so that no operator of another schema is used
    delete from cron.job_run_details
    where end_time < now() - interval '7 days'
        and jobid in (select jobid from cron.job where jobname like 'agui %')$$);

-- To list the latest failures:
--   select job.jobname, detail.start_time, detail.return_message
--   from cron.job_run_details as detail join cron.job using (jobid)
--   where detail.status = 'failed' order by detail.start_time desc limit 20;
-- To remove the schedules:
--   select cron.unschedule(jobname) from cron.job where jobname like 'agui %';
