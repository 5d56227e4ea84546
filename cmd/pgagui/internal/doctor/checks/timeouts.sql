-- no timeout cuts short what jobs and appends do
with timeout as (
    -- Of the server, unless something else decides in this session.
    select
        name,
        case when source in ('database', 'user', 'database user', 'client', 'session') then '0ms' else setting || unit end as of_server
    from pg_catalog.pg_settings
    where name in ('statement_timeout', 'lock_timeout')
),
-- who depends on which
concerned as (
    select distinct role.oid, role.rolname as name, timeout.name as timeout, timeout.of_server
    from pg_catalog.pg_roles as role
    join pg_catalog.pg_roles as granted
        on granted.rolname in ('agui_worker', 'agui_maintainer', 'agui_writer', 'agui_recorder')
    join timeout
        on timeout.name = case when granted.rolname in ('agui_worker', 'agui_maintainer') then 'statement_timeout' else 'lock_timeout' end
    where role.rolcanlogin and not role.rolsuper and pg_catalog.pg_has_role(role.oid, granted.oid, 'member')
),
effective as (
    select
        concerned.name, concerned.timeout,
        (case when chosen.value ~ '^[0-9]+$' then chosen.value || 'ms' else chosen.value end)::interval as value
    from concerned
    cross join lateral (
        select coalesce(
            (
                select split_part(setting, '=', 2)
                from pg_catalog.pg_db_role_setting as stored
                cross join unnest(stored.setconfig) as setting
                where split_part(setting, '=', 1) = concerned.timeout
                    and stored.setrole in (0, concerned.oid)
                    and stored.setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_database()))
                order by stored.setrole = 0, stored.setdatabase = 0
                limit 1
            ),
            concerned.of_server
        ) as value
    ) as chosen
)
select
    case when timeout = 'statement_timeout' and value >= '10 seconds' then 'note' else 'warning' end as severity,
    case timeout
        when 'statement_timeout' then format(
            'statement_timeout of role %s is %s: its jobs in SQL stop after %s, whatever their max_time, and what takes one statement longer is cancelled, such as to erase or verify a long thread',
            name, value, value * 0.8
        )
        else format('lock_timeout of role %s is %s: its appends wait no longer for a transaction that writes to the same thread (55P03), in place of 5 seconds', name, value)
    end as problem,
    format('alter role %I in database %I set %s = %L', name, current_database(), timeout, case timeout when 'statement_timeout' then '10min' else '5s' end) as advice
from effective
where value > '0' and value < case timeout when 'statement_timeout' then interval '1 minute' else interval '1 second' end
order by name, timeout
