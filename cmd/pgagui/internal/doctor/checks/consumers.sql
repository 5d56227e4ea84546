-- the consumers of the feed keep up
select
    'warning' as severity,
    format(
        'the consumer %L of %s %s', place.consumer, coalesce('scope ' || quote_literal(place.scope), 'all scopes'),
        case
            when place.is_lost then 'has a place in another history of transactions: the database was restored, or failed over'
            else format('is %s changed runs behind; it moved last at %s', case when place.behind = 10000 then 'at least ' else '' end || place.behind, date_trunc('second', place.moved_at))
        end
    ) as problem,
    format(
        case
            when place.is_lost then 'pgagui feed consumers move %s %s makes it begin again'
            else 'start what reads it; if nothing does any more, pgagui feed consumers rm %s %s'
        end,
        place.consumer, coalesce('--scope ' || quote_literal(place.scope), '--all-scopes')
    ) as advice
from agui.consumers() as place
where place.is_lost or place.behind = 10000 or place.behind > 0 and place.moved_at < now() - interval '1 day'
union all
-- A transaction that writes, in any database of the server, hides the changes that come after its beginning.
select
    'warning',
    format(
        'the consumers get no change that came after %s: the transaction of process %s in the database %s is open',
        date_trunc('second', activity.xact_start), activity.pid, coalesce(activity.datname, '(none)')
    ),
    format('end it, or select pg_terminate_backend(%s)', activity.pid)
from pg_catalog.pg_stat_activity as activity
where activity.backend_xid is not null and activity.xact_start < now() - interval '10 minutes' and exists (select from agui.consumers())
union all
select
    'warning',
    format('the consumers get no change that came after %s: the transaction %L is prepared in the database %s', date_trunc('second', prepared), gid, database),
    format('commit prepared %L, or rollback prepared %L', gid, gid)
from pg_catalog.pg_prepared_xacts
where prepared < now() - interval '10 minutes' and exists (select from agui.consumers())
