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
select agui.abandon(@thread_id::text, @run_id::text, @reason::text, @imported::boolean, @scope::text)::bigint as last_seq;

-- name: RunInput :many
-- One row, or none.
select given.input
from agui.run_input as given
where given.thread_key = agui.thread_key(@scope::text, @thread_id::text) and given.run_no = @run_no::int;
