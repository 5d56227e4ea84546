-- name: ThreadsToVerify :many
-- A page of threads in the order of their keys: of one scope or of all; a random share of them or
-- all; those active since a time or all.
select thread.thread_key, thread.scope, thread.thread_id
from agui.thread
where thread.thread_key operator(pg_catalog.>) @after::pg_catalog.uuid
    and (sqlc.narg(scope)::pg_catalog.text is null or thread.scope operator(pg_catalog.=) sqlc.narg(scope)::pg_catalog.text)
    and (sqlc.narg(share)::pg_catalog.float8 is null or pg_catalog.random() operator(pg_catalog.<) sqlc.narg(share)::pg_catalog.float8)
    and agui_internal.has_activity_since(thread.thread_key, sqlc.narg(since)::pg_catalog.timestamptz)
order by thread.thread_key
limit @page::int;

-- name: RandomThreads :many
select thread.thread_key, thread.scope, thread.thread_id
from agui.thread
where (sqlc.narg(scope)::pg_catalog.text is null or thread.scope operator(pg_catalog.=) sqlc.narg(scope)::pg_catalog.text)
    and agui_internal.has_activity_since(thread.thread_key, sqlc.narg(since)::pg_catalog.timestamptz)
order by pg_catalog.random()
limit @n::int;

-- name: ThreadKeys :many
select key::pg_catalog.uuid as thread_key from agui_internal.thread_keys(@thread_id::pg_catalog.text, @scope::pg_catalog.text) as key;

-- name: OrphanedKeys :many
select key::pg_catalog.uuid as thread_key from agui_internal.orphaned_keys(sqlc.narg(scope)::pg_catalog.text) as key;

-- name: ThreadSize :one
select
    (select pg_catalog.count(*) from agui.run where run.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid)::int as runs,
    (select coalesce(pg_catalog.sum(batch.n), 0) from agui.batch where batch.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid)::bigint as events,
    (select pg_catalog.count(*) from agui.snapshot where snapshot.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid)::int as snapshots;

-- name: VerifyLog :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui_internal.verify_log(@thread_key::pg_catalog.uuid) as item;

-- name: VerifyReferences :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui_internal.verify_references(@thread_key::pg_catalog.uuid) as item;

-- name: VerifySnapshots :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui_internal.verify_snapshots(@thread_key::pg_catalog.uuid) as item;

-- name: RunsToVerify :many
select run.run_no, run.run_id, run.parent_no, run.status, run.first_seq, run.last_seq, snapshot.through_seq
from agui.run
left join agui.snapshot
    on snapshot.thread_key operator(pg_catalog.=) run.thread_key and snapshot.run_no operator(pg_catalog.=) run.run_no and snapshot.rules operator(pg_catalog.=) agui_internal.rules()
where run.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid
order by run.run_no;

-- name: SnapshotToVerify :one
-- Its messages as ranges of their versions: the bodies of most were already compared in another
-- snapshot. Without a state of more than most_bytes.
select
    array(
        select coalesce(pg_catalog.lower(part.message_nos), 0)
        from pg_catalog.unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        order by part.position
    )::int[] as lows,
    array(
        select coalesce(pg_catalog.upper(part.message_nos), 0)
        from pg_catalog.unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        order by part.position
    )::int[] as highs,
    (case when agui_internal.fits(snapshot.state, @most_bytes::bigint) then snapshot.state end)::pg_catalog.json as state,
    snapshot.interrupts, snapshot.lanes
from agui.snapshot
where snapshot.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and snapshot.run_no operator(pg_catalog.=) @run_no::int;

-- name: MessageBodies :many
-- Without bodies of more than most_bytes.
select message.message_no, (case when agui_internal.fits(message.body, @most_bytes::bigint) then message.body end)::pg_catalog.json as body
from pg_catalog.unnest(@message_nos::int[]) as requested (message_no)
-- The offset makes this one look-up for each, as in agui_internal.load_snapshot.
cross join lateral (
    select stored.message_no, stored.body
    from agui.message as stored
    where stored.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and stored.message_no operator(pg_catalog.=) requested.message_no
    offset 0
) as message;

-- name: RebuildSnapshots :one
select agui.rebuild_snapshots(@thread_id::pg_catalog.text, @scope::pg_catalog.text)::bigint as snapshots;
