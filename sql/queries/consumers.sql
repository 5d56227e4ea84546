-- name: Consume :many
select
    (item).position::text as position,
    coalesce((item).scope, '')::text as scope,
    coalesce((item).thread_id, '')::text as thread_id,
    coalesce((item).run_id, '')::text as run_id,
    coalesce((item).parent_run_id, '')::text as parent_run_id,
    coalesce((item).status, '')::text as status,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).started_at, '0001-01-01 00:00:00+00')::timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::timestamptz as ended_at,
    (item).thread_uid::uuid as thread_uid,
    (item).is_erased::boolean as is_erased,
    (item).read_seq::bigint as read_seq
from agui.consume(@consumer::text, @max_rows::int, sqlc.narg(scope)::text) as item;

-- name: MoveConsumer :exec
select agui.move_consumer(@consumer::text, sqlc.narg(position)::text, sqlc.narg(scope)::text);

-- name: MarkRead :exec
select agui.mark_read(@consumer::text, @thread_id::text, @seq::bigint, @thread_scope::text, sqlc.narg(thread_uid)::uuid, sqlc.narg(scope)::text);

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
