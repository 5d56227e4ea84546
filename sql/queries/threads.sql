-- name: ThreadPage :many
-- A row for each thread; if the page has none, one row without an id.
select
    coalesce((thread).thread_id, '')::text as thread_id,
    coalesce((thread).title, '')::text as title,
    coalesce((thread).agent, '')::text as agent,
    (thread).metadata::json as metadata,
    coalesce((thread).archived, false)::boolean as archived,
    coalesce((thread).created_at, '0001-01-01 00:00:00+00')::timestamptz as created_at,
    coalesce((thread).active_at, '0001-01-01 00:00:00+00')::timestamptz as active_at,
    coalesce((thread).head_run_id, '')::text as head_run_id,
    coalesce((thread).status, '')::text as status,
    coalesce((thread).is_stale, false)::boolean as is_stale,
    coalesce((thread).runs, 0)::int as runs,
    coalesce((thread).branches, 0)::int as branches,
    coalesce((thread).cursor, '')::text as cursor,
    coalesce((thread).error_code, '')::text as error_code,
    coalesce((thread).error_message, '')::text as error_message,
    coalesce((thread).stop_reason, '')::text as stop_reason,
    coalesce((thread).cut_off_reason, '')::text as cut_off_reason,
    coalesce(page.next_cursor, '')::text as next_cursor,
    coalesce(page.searched_to, '0001-01-01 00:00:00+00')::timestamptz as searched_to
from agui.thread_page(
    sqlc.narg(agent)::text,
    sqlc.narg(archived)::boolean,
    sqlc.narg(title)::text,
    sqlc.narg(since)::timestamptz,
    sqlc.narg(status)::text,
    @head_only::boolean,
    sqlc.narg(metadata)::jsonb,
    @max_rows::int,
    sqlc.narg(cursor)::text,
    @scope::text
) as page
left join lateral unnest(page.threads) as thread on true;

-- name: ListRuns :many
select
    (run).thread_id::text as thread_id,
    (run).run_id::text as run_id,
    coalesce((run).parent_run_id, '')::text as parent_run_id,
    (run).status::text as status,
    coalesce((run).title, '')::text as title,
    coalesce((run).agent, '')::text as agent,
    (run).first_seq::bigint as first_seq,
    (run).last_seq::bigint as last_seq,
    (run).started_at::timestamptz as started_at,
    (run).ended_at::timestamptz as ended_at,
    coalesce((run).error_code, '')::text as error_code,
    coalesce((run).error_message, '')::text as error_message,
    coalesce((run).stop_reason, '')::text as stop_reason,
    coalesce((run).cut_off_reason, '')::text as cut_off_reason,
    (run).cursor::text as cursor
from agui.list_runs(
    @status::text[],
    sqlc.narg(since)::timestamptz,
    @max_rows::int,
    sqlc.narg(cursor)::text,
    @scope::text
) as run;

-- name: ThreadIDs :many
-- A page of the threads of a scope in the order of their keys, which begin with the part of the
-- scope.
select thread.thread_key, thread.thread_id
from agui.thread
where thread.scope = @scope::text
    and thread.thread_key > @after::uuid
    and thread.thread_key >= agui_internal.first_key(@scope::text)
    and thread.thread_key <= agui_internal.last_key(@scope::text)
order by thread.thread_key
limit @page::int;

-- name: GetThread :one
select
    (thread).thread_id::text as thread_id,
    coalesce((thread).title, '')::text as title,
    coalesce((thread).agent, '')::text as agent,
    (thread).metadata::json as metadata,
    (thread).archived::boolean as archived,
    (thread).created_at::timestamptz as created_at,
    (thread).active_at::timestamptz as active_at,
    coalesce((thread).head_run_id, '')::text as head_run_id,
    coalesce((thread).status, '')::text as status,
    (thread).is_stale::boolean as is_stale,
    (thread).runs::int as runs,
    (thread).branches::int as branches,
    (thread).cursor::text as cursor,
    coalesce((thread).error_code, '')::text as error_code,
    coalesce((thread).error_message, '')::text as error_message,
    coalesce((thread).stop_reason, '')::text as stop_reason,
    coalesce((thread).cut_off_reason, '')::text as cut_off_reason
from agui.get_thread(@thread_id::text, @scope::text) as thread;

-- name: SetThread :one
select
    (thread).thread_id::text as thread_id,
    coalesce((thread).title, '')::text as title,
    coalesce((thread).agent, '')::text as agent,
    (thread).metadata::json as metadata,
    (thread).archived::boolean as archived,
    (thread).created_at::timestamptz as created_at,
    (thread).active_at::timestamptz as active_at,
    coalesce((thread).head_run_id, '')::text as head_run_id,
    coalesce((thread).status, '')::text as status,
    (thread).is_stale::boolean as is_stale,
    (thread).runs::int as runs,
    (thread).branches::int as branches,
    (thread).cursor::text as cursor,
    coalesce((thread).error_code, '')::text as error_code,
    coalesce((thread).error_message, '')::text as error_message,
    coalesce((thread).stop_reason, '')::text as stop_reason,
    coalesce((thread).cut_off_reason, '')::text as cut_off_reason
from agui.set_thread(
    @thread_id::text,
    sqlc.narg(title)::text,
    sqlc.narg(agent)::text,
    sqlc.narg(archived)::boolean,
    sqlc.narg(metadata)::jsonb,
    @create_if_missing::boolean,
    @scope::text
) as thread;

-- name: FillTitle :exec
select agui_internal.fill_title(@thread_key::uuid);
