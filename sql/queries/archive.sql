-- name: ThreadToArchive :one
-- What a manifest says of a thread. The digests are those without the log.
select
    thread.created_at,
    (select count(*) from agui.run where run.thread_key = thread.thread_key)::int as runs,
    (select count(*) from agui.run where run.thread_key = thread.thread_key and run.status = 'running')::int as in_progress,
    coalesce(latest.first_seq + latest.n - 1, 0)::bigint as events,
    (latest.hash is not null)::boolean as is_chained,
    agui_internal.content_digests(thread.thread_key, @tables::jsonb, false)::json as digests
from agui.thread
left join lateral (
    select batch.first_seq, batch.n, batch.hash
    from agui.batch
    where batch.thread_key = thread.thread_key
    order by batch.first_seq desc
    limit 1
) as latest on true
where thread.thread_key = @thread_key::uuid;

-- name: ArchivedTables :one
-- The tables and columns that an archive has.
select json_object_agg(listed.name, listed.columns)::json as tables
from agui_internal.archived_tables() as listed;

-- name: ContentDigests :one
-- Empty: there is no such thread.
select coalesce(agui_internal.content_digests(@thread_key::uuid, @tables::jsonb), '{}')::json as digests;

-- name: ThreadKey :one
select agui.thread_key(@scope::text, @thread_id::text)::uuid as thread_key;

-- name: BeginUnarchive :one
select agui_internal.begin_unarchive(@scope::text, @thread_id::text, @created_at::timestamptz)::uuid as thread_key;

-- name: UnarchiveRows :exec
select agui_internal.unarchive_rows(@thread_key::uuid, @table_name::text, @columns::text[], @items::json);

-- name: FinishUnarchive :exec
select agui_internal.finish_unarchive(@thread_key::uuid, @tables::jsonb, @digests::jsonb);
