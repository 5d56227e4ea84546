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
    coalesce((thread).error_code, '')::pg_catalog.text as error_code,
    coalesce((thread).error_message, '')::pg_catalog.text as error_message,
    coalesce((thread).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((thread).cut_off_reason, '')::pg_catalog.text as cut_off_reason,
    coalesce(page.next_cursor, '')::pg_catalog.text as next_cursor,
    coalesce(page.searched_to, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as searched_to
from agui.thread_page(
    sqlc.narg(agent)::pg_catalog.text,
    sqlc.narg(archived)::boolean,
    sqlc.narg(title)::pg_catalog.text,
    sqlc.narg(since)::pg_catalog.timestamptz,
    sqlc.narg(status)::pg_catalog.text,
    @head_only::boolean,
    sqlc.narg(metadata)::pg_catalog.jsonb,
    @max_rows::int,
    sqlc.narg(cursor)::pg_catalog.text,
    @scope::pg_catalog.text
) as page
left join lateral pg_catalog.unnest(page.threads) as thread on true;

-- name: ListRuns :many
select
    (run).thread_id::pg_catalog.text as thread_id,
    (run).run_id::pg_catalog.text as run_id,
    coalesce((run).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (run).status::pg_catalog.text as status,
    coalesce((run).title, '')::pg_catalog.text as title,
    coalesce((run).agent, '')::pg_catalog.text as agent,
    (run).first_seq::bigint as first_seq,
    (run).last_seq::bigint as last_seq,
    (run).started_at::pg_catalog.timestamptz as started_at,
    (run).ended_at::pg_catalog.timestamptz as ended_at,
    coalesce((run).error_code, '')::pg_catalog.text as error_code,
    coalesce((run).error_message, '')::pg_catalog.text as error_message,
    coalesce((run).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((run).cut_off_reason, '')::pg_catalog.text as cut_off_reason,
    (run).cursor::pg_catalog.text as cursor
from agui.list_runs(
    @status::pg_catalog.text[],
    sqlc.narg(since)::pg_catalog.timestamptz,
    @max_rows::int,
    sqlc.narg(cursor)::pg_catalog.text,
    @scope::pg_catalog.text
) as run;

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
    (thread).cursor::pg_catalog.text as cursor,
    coalesce((thread).error_code, '')::pg_catalog.text as error_code,
    coalesce((thread).error_message, '')::pg_catalog.text as error_message,
    coalesce((thread).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((thread).cut_off_reason, '')::pg_catalog.text as cut_off_reason
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
    (thread).cursor::pg_catalog.text as cursor,
    coalesce((thread).error_code, '')::pg_catalog.text as error_code,
    coalesce((thread).error_message, '')::pg_catalog.text as error_message,
    coalesce((thread).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((thread).cut_off_reason, '')::pg_catalog.text as cut_off_reason
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
