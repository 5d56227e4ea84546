-- name: Changes :many
select
    (item).position::pg_catalog.text as position,
    (item).scope::pg_catalog.text as scope,
    (item).thread_id::pg_catalog.text as thread_id,
    (item).run_id::pg_catalog.text as run_id,
    coalesce((item).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (item).status::pg_catalog.text as status,
    (item).first_seq::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    (item).started_at::pg_catalog.timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    0::bigint as read_seq -- of a consumer alone
from agui.changes(sqlc.narg(after)::pg_catalog.text, @max_rows::int, sqlc.narg(scope)::pg_catalog.text) as item;
