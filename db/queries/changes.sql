-- name: Changes :many
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
    0::bigint as read_seq -- of a consumer alone
from agui.changes(sqlc.narg(after)::pg_catalog.text, @max_rows::int, sqlc.narg(scope)::pg_catalog.text) as item;
