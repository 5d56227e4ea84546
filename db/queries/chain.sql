-- name: Heads :many
-- A page of the heads of chained threads in the order of their keys.
select (page).thread_key::pg_catalog.uuid as thread_key, (page).scope::pg_catalog.text as scope, (page).thread_id::pg_catalog.text as thread_id, (page).seq::bigint as seq, (page).hash::pg_catalog.bytea as hash,
    (page).recorded_at::pg_catalog.timestamptz as recorded_at
from agui_internal.page_of_heads(sqlc.narg(scope)::pg_catalog.text, @after::pg_catalog.uuid, @page::int) as page;

-- name: ChainState :one
-- due_seq is the first event of the run that began first after the chain was enabled, 0: none.
-- is_certain: it must be chained; a transaction that was older than the chain may not have seen it.
select
    thread.scope, thread.thread_id,
    coalesce(due.first_seq, 0)::bigint as due_seq,
    coalesce(due.run_id, '')::pg_catalog.text as due_run_id,
    coalesce(due.is_certain, false)::boolean as is_certain
from agui.thread
cross join lateral (
    select pg_catalog.min(chained.since) as since from agui_internal.chained_scope as chained where chained.is_all or chained.scope operator(pg_catalog.=) thread.scope
) as chain
left join lateral (
    select run.first_seq, run.run_id, (run.started_at operator(pg_catalog.>) (chain.since operator(pg_catalog.+) interval '1 minute')) as is_certain
    from agui.run
    where run.thread_key operator(pg_catalog.=) thread.thread_key and run.started_at operator(pg_catalog.>) chain.since
    -- A certain one, if there is any.
    order by (run.started_at operator(pg_catalog.>) (chain.since operator(pg_catalog.+) interval '1 minute')) desc, run.run_no
    limit 1
) as due on true
where thread.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid;

-- name: ChainRuns :many
select
    run.run_no, run.run_id, run.parent_no, run.first_seq,
    agui_internal.stored_input_hash(run.thread_key, run.run_no)::pg_catalog.bytea as input_hash
from agui.run
where run.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid
order by run.run_no;

-- name: ChainBatches :many
-- A page of the batches of a thread, with the limits of BatchesBetween.
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).bytes::bigint as bytes, (span).has_more::boolean as has_more
    from agui_internal.page_of_batches(
        @thread_key::pg_catalog.uuid, @from_seq::bigint, 9223372036854775807, @run_nos::int[], @page::int, @page_bytes::bigint
    ) as span
)
select
    batch.first_seq, batch.n, batch.run_no, batch.recorded_at, coalesce(batch.earlier_us, '{}')::int[] as earlier_us, batch.hash,
    coalesce(batch.links, '{}')::int[] as links,
    (case when (select page.bytes from page) operator(pg_catalog.<=) @most_bytes::bigint then batch.events end)::pg_catalog.json as events,
    (select page.bytes from page)::bigint as page_bytes,
    (select page.has_more from page)::boolean as has_more
from agui.batch
where batch.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid
    and batch.first_seq operator(pg_catalog.>=) @from_seq::bigint and batch.first_seq operator(pg_catalog.<=) (select page.last_seq from page)
    and batch.run_no operator(pg_catalog.=) any (@run_nos::int[])
order by batch.first_seq;

-- name: Erasures :many
select (erasure).erased_at::pg_catalog.timestamptz as erased_at, (erasure).events::bigint as events
from agui_internal.erasures_of(agui.thread_key(@scope::pg_catalog.text, @thread_id::pg_catalog.text)) as erasure;
