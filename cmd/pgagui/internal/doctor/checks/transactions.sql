-- nothing holds vacuum or the locks of threads back
select
    'warning' as severity,
    format(
        'the transaction of process %s (%s, %s) is open since %s: vacuum cannot remove what was deleted since',
        activity.pid, activity.usename, coalesce(nullif(activity.application_name, ''), 'no application_name'), date_trunc('second', activity.xact_start)
    ) as problem,
    format('end it, or select pg_terminate_backend(%s); set idle_in_transaction_session_timeout', activity.pid) as advice
from pg_catalog.pg_stat_activity as activity
where activity.datname = current_database()
and activity.backend_type = 'client backend'
and activity.xact_start < now() - interval '1 hour'
union all
select
    'warning',
    format('the prepared transaction %L is open since %s: it holds its locks and vacuum back', gid, date_trunc('second', prepared)),
    format('commit prepared %L, or rollback prepared %L', gid, gid)
from pg_catalog.pg_prepared_xacts
where database = current_database() and prepared < now() - interval '1 hour'
union all
select
    'warning',
    format('the replication slot %I is not in use and holds back %s of WAL', slot_name, pg_catalog.pg_size_pretty(held.bytes)),
    format('select pg_drop_replication_slot(%L), if its consumer is gone', slot_name)
from pg_catalog.pg_replication_slots
cross join lateral (
    select pg_catalog.pg_wal_lsn_diff(
        case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() else pg_catalog.pg_current_wal_lsn() end, restart_lsn
    ) as bytes
) as held
where not active and held.bytes > 1073741824
