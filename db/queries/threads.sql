-- name: ThreadPage :many
-- A row for each thread; if the page has none, one row without an id.
select
    coalesce((thread).thread_id, '')::pg_catalog.text as thread_id,
    coalesce((thread).title, '')::pg_catalog.text as title,
    coalesce((thread).agent, '')::pg_catalog.text as agent,
    (thread).metadata::pg_catalog.json as metadata,
    coalesce((thread).archived, false)::boolean as archived,
    coalesce((thread).created_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as created_at,
    coalesce((thread).active_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as active_at,
    coalesce((thread).head_run_id, '')::pg_catalog.text as head_run_id,
    coalesce((thread).status, '')::pg_catalog.text as status,
    coalesce((thread).is_stale, false)::boolean as is_stale,
    coalesce((thread).runs, 0)::int as runs,
    coalesce((thread).branches, 0)::int as branches,
    coalesce((thread).cursor, '')::pg_catalog.text as cursor,
    coalesce(page.next_cursor, '')::pg_catalog.text as next_cursor
from agui.thread_page(
    sqlc.narg(agent)::pg_catalog.text,
    sqlc.narg(archived)::boolean,
    sqlc.narg(title)::pg_catalog.text,
    sqlc.narg(since)::pg_catalog.timestamptz,
    sqlc.narg(status)::pg_catalog.text,
    sqlc.narg(metadata)::pg_catalog.jsonb,
    @max_rows::int,
    sqlc.narg(cursor)::pg_catalog.text,
    @scope::pg_catalog.text
) as page
left join lateral pg_catalog.unnest(page.threads) as thread on true;

-- name: ThreadIDs :many
-- A page of the threads of a scope in the order of their keys, which begin with the part of the
-- scope.
select thread.thread_key, thread.thread_id
from agui.thread
where thread.scope operator(pg_catalog.=) @scope::pg_catalog.text
    and thread.thread_key operator(pg_catalog.>) @after::pg_catalog.uuid
    and thread.thread_key operator(pg_catalog.>=) agui_internal.first_key(@scope::pg_catalog.text)
    and thread.thread_key operator(pg_catalog.<=) agui_internal.last_key(@scope::pg_catalog.text)
order by thread.thread_key
limit @page::int;

-- name: GetThread :one
select
    (thread).thread_id::pg_catalog.text as thread_id,
    coalesce((thread).title, '')::pg_catalog.text as title,
    coalesce((thread).agent, '')::pg_catalog.text as agent,
    (thread).metadata::pg_catalog.json as metadata,
    (thread).archived::boolean as archived,
    (thread).created_at::pg_catalog.timestamptz as created_at,
    (thread).active_at::pg_catalog.timestamptz as active_at,
    coalesce((thread).head_run_id, '')::pg_catalog.text as head_run_id,
    coalesce((thread).status, '')::pg_catalog.text as status,
    (thread).is_stale::boolean as is_stale,
    (thread).runs::int as runs,
    (thread).branches::int as branches,
    (thread).cursor::pg_catalog.text as cursor
from agui.get_thread(@thread_id::pg_catalog.text, @scope::pg_catalog.text) as thread;

-- name: SetThread :one
select
    (thread).thread_id::pg_catalog.text as thread_id,
    coalesce((thread).title, '')::pg_catalog.text as title,
    coalesce((thread).agent, '')::pg_catalog.text as agent,
    (thread).metadata::pg_catalog.json as metadata,
    (thread).archived::boolean as archived,
    (thread).created_at::pg_catalog.timestamptz as created_at,
    (thread).active_at::pg_catalog.timestamptz as active_at,
    coalesce((thread).head_run_id, '')::pg_catalog.text as head_run_id,
    coalesce((thread).status, '')::pg_catalog.text as status,
    (thread).is_stale::boolean as is_stale,
    (thread).runs::int as runs,
    (thread).branches::int as branches,
    (thread).cursor::pg_catalog.text as cursor
from agui.set_thread(
    @thread_id::pg_catalog.text,
    sqlc.narg(title)::pg_catalog.text,
    sqlc.narg(agent)::pg_catalog.text,
    sqlc.narg(archived)::boolean,
    sqlc.narg(metadata)::pg_catalog.jsonb,
    @create_if_missing::boolean,
    @scope::pg_catalog.text
) as thread;

-- name: FillTitle :exec
select agui_internal.fill_title(@thread_key::pg_catalog.uuid);
