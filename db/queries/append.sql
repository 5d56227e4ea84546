-- name: AppendEvents :one
select agui.append(
    @thread_id::pg_catalog.text, @run_id::pg_catalog.text, @events::pg_catalog.json, sqlc.narg(after_seq)::bigint, sqlc.narg(input)::pg_catalog.json, sqlc.narg(parent_run_id)::pg_catalog.text,
    @parallel::boolean, @strict::boolean, @scope::pg_catalog.text
)::bigint as last_seq;

-- name: ImportEvents :one
select agui.import_events(
    @thread_id::pg_catalog.text, @run_id::pg_catalog.text, @events::pg_catalog.json, sqlc.narg(after_seq)::bigint, sqlc.narg(input)::pg_catalog.json, sqlc.narg(parent_run_id)::pg_catalog.text,
    @parallel::boolean, @strict::boolean, @scope::pg_catalog.text
)::bigint as last_seq;

-- name: Abandon :one
select agui.abandon(@thread_id::pg_catalog.text, @run_id::pg_catalog.text, @reason::pg_catalog.text, @imported::boolean, @cancelled::boolean, @scope::pg_catalog.text)::bigint as last_seq;

-- name: RunInput :many
-- One row, or none.
select given.input
from agui_internal.find_run(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text) as run
join agui.input as given on given.thread_key operator(pg_catalog.=) run.thread_key and given.run_no operator(pg_catalog.=) run.run_no;
