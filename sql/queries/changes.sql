-- name: Changes :many
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
    0::bigint as read_seq -- of a consumer alone
from agui.changes(sqlc.narg(after)::text, @max_rows::int, sqlc.narg(scope)::text) as item;
