-- name: Changes :many
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
    0::bigint as read_seq -- of a consumer alone
from agui.changes(sqlc.narg(after)::text, @max_rows::int, sqlc.narg(scope)::text) as item;
