-- name: PrimaryState :one
-- What a standby is compared with: which server and database it is, and how far it has come, in front
-- of next_transaction.
select
    pg_postmaster_start_time()::timestamptz as started_at,
    (select database.oid from pg_database as database where database.datname = current_database())::bigint as database_oid,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_transaction;

-- name: StandbyState :one
-- How far a standby has come: it shows no transaction from next_transaction on. problem says why reads
-- must not go there; empty: they may. Given is the state of the primary, nulls if it does not answer. A
-- standby that was promoted takes writes of its own. Reads may go there once the primary's address leads
-- there too.
select
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_transaction,
    (case
        when (select database.oid from pg_database as database where database.datname = current_database())::bigint <> sqlc.narg(database_oid)::bigint
            then 'it is another database than the primary''s'
        when not pg_is_in_recovery() and coalesce(pg_postmaster_start_time() <> sqlc.narg(started_at)::timestamptz, true)
            then 'it is no standby of the primary: it was promoted, or never was one'
        else ''
    end)::text as problem;

-- name: CurrentTransaction :one
-- The transaction that the statements before it in a message have written in. Empty: they wrote
-- nothing.
select coalesce(pg_current_xact_id_if_assigned()::text, '')::text as transaction_id;

-- name: IsShown :one
-- Whether a standby shows a transaction, and the event of a thread with a seq. Empty, and 0: none.
-- On a standby pg_visible_in_snapshot takes transactions in progress for visible, and
-- pg_xact_status raises an error for one that is not known yet. It is null for a very old one.
select (
    case
        when @transaction_id::text = '' then true
        when cast(@transaction_id::text as pg_catalog.xid8) >= pg_snapshot_xmax(pg_current_snapshot()) then false
        else coalesce(pg_xact_status(cast(@transaction_id::text as pg_catalog.xid8)), '') <> 'in progress'
    end
    and (
        @seq::bigint = 0
        or coalesce((
            select batch.first_seq + batch.n - 1
            from agui.batch
            where batch.thread_key = agui.thread_key(@scope::text, @thread_id::text)
            order by batch.first_seq desc
            limit 1
        ), 0) >= @seq::bigint
    )
)::boolean as is_shown;
