-- name: AppendEvents :one
select agui.append(
    @thread_id::text, @run_id::text, @events::json, sqlc.narg(after_seq)::bigint, @scope::text, @parallel::boolean
)::bigint as last_seq;

-- name: Abandon :one
select agui.abandon(@thread_id::text, @run_id::text, @reason::text, @scope::text)::bigint as last_seq;
