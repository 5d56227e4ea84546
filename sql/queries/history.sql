-- name: History :many
select
    (item).seq::bigint as seq,
    (item).last_seq::bigint as last_seq,
    (item).run_id::text as run_id,
    (item).type::text as type,
    (item).event_count::bigint as event_count,
    (item).created_at::timestamptz as created_at,
    coalesce((item).completed_at, '0001-01-01 00:00:00+00')::timestamptz as completed_at,
    (item).payload::json as payload
from agui.history(
    @thread_id::text,
    sqlc.narg(types)::text[],
    sqlc.narg(since)::timestamptz,
    sqlc.narg(until)::timestamptz,
    @after_seq::bigint,
    @max_rows::int,
    @compressed::boolean,
    sqlc.narg(run_id)::text,
    sqlc.narg(max_bytes)::int,
    sqlc.narg(max_idle)::interval,
    @scope::text
) as item;
