create or replace function agui_internal.job_lock_problem(job text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select format(
        'process %s of role "%s" holds the lock of the job %s, and %s',
        session.pid, session.usename, job_lock_problem.job,
        case when may.work then 'has held it for a day in one transaction' else 'that role may not run jobs' end
    )
    from pg_locks as lock
    join pg_stat_activity as session
        on session.pid = lock.pid
    cross join lateral (
        select coalesce(bool_or(pg_has_role(session.usesysid, worker.oid, 'member')), false) as work
        from (
            select to_regrole(name)::oid as oid from unnest(array['agui_worker', 'agui_maintainer']) as name
            union all
            select nspowner from pg_namespace where nspname = 'agui'
        ) as worker
        where worker.oid is not null
    ) as may
    where lock.locktype = 'advisory'
        and lock.database = (select oid from pg_database where datname = current_database())
        and lock.classid = ((agui_internal.job_lock_id(job) >> 32) & 4294967295)::oid
        and lock.objid = (agui_internal.job_lock_id(job) & 4294967295)::oid
        and lock.objsubid = 1
        and lock.granted
        and (not may.work or session.xact_start < clock_timestamp() - interval '1 day')
    order by session.pid
    limit 1
$$;

comment on function agui_internal.job_lock_problem(text) is
    'The reason why a job would find its lock taken every time: the holder is a role that may not '
    'run jobs, or has held it for a day. Null: the same job is in progress. Advisory locks have no '
    'owner: any role that can connect may take one.';

revoke execute on function agui_internal.job_lock_problem(text) from public;
