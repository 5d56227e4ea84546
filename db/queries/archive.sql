-- name: ThreadToArchive :one
-- What a manifest says of a thread. The digests are those without the log.
select
    thread.created_at,
    (select pg_catalog.count(*) from agui.run where run.thread_key operator(pg_catalog.=) thread.thread_key)::int as runs,
    (select pg_catalog.count(*) from agui.run where run.thread_key operator(pg_catalog.=) thread.thread_key and run.status operator(pg_catalog.=) 'running')::int as in_progress,
    coalesce(latest.first_seq operator(pg_catalog.+) latest.n operator(pg_catalog.-) 1, 0)::bigint as events,
    (latest.hash is not null)::boolean as is_chained,
    agui_internal.content_digests(thread.thread_key, @tables::pg_catalog.jsonb, false)::pg_catalog.json as digests
from agui.thread
left join lateral (
    select batch.first_seq, batch.n, batch.hash
    from agui.batch
    where batch.thread_key operator(pg_catalog.=) thread.thread_key
    order by batch.first_seq desc
    limit 1
) as latest on true
where thread.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid;

-- name: ArchivedTables :one
-- The tables and columns that an archive has.
select pg_catalog.json_object_agg(listed.name, listed.columns)::pg_catalog.json as tables
from agui_internal.archived_tables() as listed;

-- name: ContentDigests :one
-- Empty: there is no such thread.
select coalesce(agui_internal.content_digests(@thread_key::pg_catalog.uuid, @tables::pg_catalog.jsonb), '{}')::pg_catalog.json as digests;

-- name: ThreadKey :one
select agui.thread_key(@scope::pg_catalog.text, @thread_id::pg_catalog.text)::pg_catalog.uuid as thread_key;

-- name: BeginUnarchive :one
select agui_internal.begin_unarchive(@scope::pg_catalog.text, @thread_id::pg_catalog.text, @created_at::pg_catalog.timestamptz)::pg_catalog.uuid as thread_key;

-- name: UnarchiveRows :exec
select agui_internal.unarchive_rows(@thread_key::pg_catalog.uuid, @table_name::pg_catalog.text, @columns::pg_catalog.text[], @items::pg_catalog.json);

-- name: FinishUnarchive :exec
select agui_internal.finish_unarchive(@thread_key::pg_catalog.uuid, @tables::pg_catalog.jsonb, @digests::pg_catalog.jsonb);
