-- name: PrimaryState :one
-- What a standby is compared with: which server and database it is, and how far it has come, in front
-- of next_transaction.
select
    pg_catalog.pg_postmaster_start_time()::pg_catalog.timestamptz as started_at,
    (select database.oid from pg_catalog.pg_database as database where database.datname operator(pg_catalog.=) pg_catalog.current_database())::bigint as database_oid,
    pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text::bigint as next_transaction;

-- name: StandbyState :one
-- How far a standby has come: it shows no transaction from next_transaction on. problem says why reads
-- must not go there; empty: they may. Given is the state of the primary, nulls if it does not answer. A
-- standby that was promoted takes writes of its own. Reads may go there once the primary's address leads
-- there too.
select
    pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text::bigint as next_transaction,
    (case
        when (select database.oid from pg_catalog.pg_database as database where database.datname operator(pg_catalog.=) pg_catalog.current_database())::bigint operator(pg_catalog.<>) sqlc.narg(database_oid)::bigint
            then 'it is another database than the primary''s'
        when not pg_catalog.pg_is_in_recovery() and coalesce(pg_catalog.pg_postmaster_start_time() operator(pg_catalog.<>) sqlc.narg(started_at)::pg_catalog.timestamptz, true)
            then 'it is no standby of the primary: it was promoted, or never was one'
        else ''
    end)::pg_catalog.text as problem;

-- name: CurrentTransaction :one
-- The transaction that the statements before it in a message have written in. Empty: they wrote
-- nothing.
select coalesce(pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text, '')::pg_catalog.text as transaction_id;

-- name: IsShown :one
-- Whether a standby shows a transaction, and the event of a thread with a seq. Empty, and 0: none.
-- On a standby pg_visible_in_snapshot takes transactions in progress for visible, and
-- pg_xact_status raises an error for one that is not known yet. It is null for a very old one.
select (
    case
        when @transaction_id::pg_catalog.text operator(pg_catalog.=) '' then true
        when cast(@transaction_id::pg_catalog.text as pg_catalog.xid8) operator(pg_catalog.>=) pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) then false
        else coalesce(pg_catalog.pg_xact_status(cast(@transaction_id::pg_catalog.text as pg_catalog.xid8)), '') operator(pg_catalog.<>) 'in progress'
    end
    and (
        @seq::bigint operator(pg_catalog.=) 0
        or coalesce((
            select batch.first_seq operator(pg_catalog.+) batch.n operator(pg_catalog.-) 1
            from agui.batch
            where batch.thread_key operator(pg_catalog.=) agui.thread_key(@scope::pg_catalog.text, @thread_id::pg_catalog.text)
            order by batch.first_seq desc
            limit 1
        ), 0) operator(pg_catalog.>=) @seq::bigint
    )
)::boolean as is_shown;
