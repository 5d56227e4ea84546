-- name: Consume :many
select
    (item).position::pg_catalog.text as position,
    coalesce((item).scope, '')::pg_catalog.text as scope,
    coalesce((item).thread_id, '')::pg_catalog.text as thread_id,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).parent_run_id, '')::pg_catalog.text as parent_run_id,
    coalesce((item).status, '')::pg_catalog.text as status,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).started_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (item).thread_uid::pg_catalog.uuid as thread_uid,
    (item).is_erased::boolean as is_erased,
    (item).read_seq::bigint as read_seq
from agui.consume(@consumer::pg_catalog.text, @max_rows::int, sqlc.narg(scope)::pg_catalog.text) as item;

-- name: MoveConsumer :exec
select agui.move_consumer(@consumer::pg_catalog.text, sqlc.narg(position)::pg_catalog.text, sqlc.narg(scope)::pg_catalog.text);

-- name: MarkRead :exec
select agui.mark_read(@consumer::pg_catalog.text, @thread_id::pg_catalog.text, @seq::bigint, @thread_scope::pg_catalog.text, sqlc.narg(thread_uid)::pg_catalog.uuid, sqlc.narg(scope)::pg_catalog.text);

-- name: RemoveConsumer :one
select agui.remove_consumer(@consumer::pg_catalog.text, sqlc.narg(scope)::pg_catalog.text)::boolean as was_known;

-- name: Consumers :many
select
    ((item).scope is null)::boolean as all_scopes,
    coalesce((item).scope, '')::pg_catalog.text as scope,
    (item).consumer::pg_catalog.text as consumer,
    coalesce((item).position, '')::pg_catalog.text as position,
    coalesce((item).behind, 0)::bigint as behind,
    (item).is_lost::boolean as is_lost,
    (item).created_at::pg_catalog.timestamptz as created_at,
    (item).moved_at::pg_catalog.timestamptz as moved_at
from agui.consumers() as item;
