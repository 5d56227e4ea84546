create or replace function agui_internal.lock_holders(lock_id bigint)
returns text
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        string_agg(distinct case
            when lock.pid is null then 'a prepared transaction'
            else format('process %s of role "%s"', lock.pid, session.usename)
        end, ', '),
        'another transaction'
    )
    from pg_locks as lock
    left join pg_stat_activity as session
        on session.pid = lock.pid
    where lock.locktype = 'advisory'
        and lock.database = (select oid from pg_database where datname = current_database())
        and lock.classid = ((lock_id >> 32) & 4294967295)::oid
        and lock.objid = (lock_id & 4294967295)::oid
        and lock.objsubid = 1
        and lock.granted
        and lock.pid is distinct from pg_backend_pid()
$$;

comment on function agui_internal.lock_holders(bigint) is
    'Describes the holders of an advisory lock of this database, for an error text. Any role that '
    'can connect may take one.';

revoke execute on function agui_internal.lock_holders(bigint) from public;
