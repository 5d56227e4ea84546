-- name: Consume :many
select
    (item).position::text as position,
    (item).scope::text as scope,
    (item).thread_id::text as thread_id,
    (item).run_id::text as run_id,
    coalesce((item).parent_run_id, '')::text as parent_run_id,
    (item).status::text as status,
    (item).first_seq::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    (item).started_at::timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::timestamptz as ended_at,
    (item).read_seq::bigint as read_seq
from agui.consume(@consumer::text, @max_rows::int, sqlc.narg(scope)::text) as item;

-- name: MoveConsumer :exec
select agui.move_consumer(@consumer::text, sqlc.narg(position)::text, sqlc.narg(scope)::text);

-- name: MarkRead :exec
select agui.mark_read(@consumer::text, @thread_id::text, @seq::bigint, @thread_scope::text, sqlc.narg(scope)::text);

-- name: RemoveConsumer :one
select agui.remove_consumer(@consumer::text, sqlc.narg(scope)::text)::boolean as was_known;

-- name: Consumers :many
select
    ((item).scope is null)::boolean as all_scopes,
    coalesce((item).scope, '')::text as scope,
    (item).consumer::text as consumer,
    coalesce((item).position, '')::text as position,
    coalesce((item).behind, 0)::bigint as behind,
    (item).is_lost::boolean as is_lost,
    (item).created_at::timestamptz as created_at,
    (item).moved_at::timestamptz as moved_at
from agui.consumers() as item;
