-- The upkeep by pg_cron, without any program outside the database. Run this once with psql, in the database that has the schema agui and is
-- the one of cron.database_name, as the role that the jobs shall run as: it needs agui_worker (agui_maintainer, too, to erase), and usage on the schema cron.
-- Running it again replaces the schedules. (For a database other than cron.database_name: cron.schedule_in_database.)
--
-- pg_cron starts a job again only when the last one has ended, and each commits as it goes: a restart of the server loses nothing.

create extension if not exists pg_cron;

-- Fold ended runs into snapshots, and join the small batches of runs that ended a while ago. pg_cron 1.5 takes '10 seconds' in place of '* * * * *' too.
select cron.schedule('agui compact', '* * * * *', $$call agui.compact(max_time => '50 seconds')$$);

-- Snapshots of long runs that are still in progress.
select cron.schedule('agui compact running', '* * * * *', $$call agui.compact_running(max_time => '50 seconds')$$);

-- Close runs whose writers are gone: those without a sign of life within the lease (agui.setting). Followers of such a run see its end then.
select cron.schedule('agui reap', '* * * * *', $$call agui.reap(max_time => '50 seconds')$$);

-- Where threads of all scopes are to go some time after their last event:
-- select cron.schedule('agui erase', '30 3 * * *', $$call agui.erase_older('90 days', reason => 'retention', max_time => '1 hour', scope => null)$$);

-- pg_cron keeps a row of each time it did something.
select cron.schedule('agui history', '0 4 * * *', $$
    set search_path = pg_catalog, pg_temp;  -- so that no operator of others is taken
    delete from cron.job_run_details
    where end_time < now() - interval '7 days'
        and jobid in (select jobid from cron.job where jobname like 'agui %')$$);

-- What went wrong lately, if anything:
--   select job.jobname, detail.start_time, detail.return_message
--   from cron.job_run_details as detail join cron.job using (jobid)
--   where detail.status = 'failed' order by detail.start_time desc limit 20;
-- To take it back:
--   select cron.unschedule(jobname) from cron.job where jobname like 'agui %';
