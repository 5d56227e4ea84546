-- name: ServerState :one
-- What tells a standby from the server that takes writes, and how far it has come: it shows no
-- transaction from next_transaction on.
select
    pg_is_in_recovery()::boolean as is_standby,
    pg_postmaster_start_time()::timestamptz as started_at,
    (select database.oid from pg_database as database where database.datname = current_database())::bigint as database_oid,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_transaction;

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
