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
select agui.abandon(@thread_id::text, @run_id::text, @reason::text, @scope::text)::bigint as last_seq;
