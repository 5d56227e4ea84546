-- name: AppendEvents :one
select agui.append(
    @thread_id::text, @run_id::text, @events::json, sqlc.narg(after_seq)::bigint, sqlc.narg(input)::json, sqlc.narg(parent_run_id)::text,
    @parallel::boolean, @strict::boolean, @scope::text
)::bigint as last_seq;

-- name: ImportEvents :one
select agui.import_events(
    @thread_id::text, @run_id::text, @events::json, sqlc.narg(after_seq)::bigint, sqlc.narg(input)::json, sqlc.narg(parent_run_id)::text,
    @parallel::boolean, @strict::boolean, @scope::text
)::bigint as last_seq;

-- name: Abandon :one
select agui.abandon(@thread_id::text, @run_id::text, @reason::text, @imported::boolean, @cancelled::boolean, @scope::text)::bigint as last_seq;

-- name: RunInput :many
-- One row, or none.
select given.input
from agui_internal.find_run(@thread_id::text, sqlc.narg(run_id)::text, @scope::text) as run
join agui.input as given on given.thread_key = run.thread_key and given.run_no = run.run_no;
