-- name: Search :many
select
    (item).scope::pg_catalog.text as scope,
    (item).thread_id::pg_catalog.text as thread_id,
    (item).run_id::pg_catalog.text as run_id,
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    (item).role::pg_catalog.text as role,
    (item).seq::bigint as seq,
    (item).said_at::pg_catalog.timestamptz as said_at,
    (item).rank::real as rank,
    (item).snippet::pg_catalog.text as snippet,
    (item).cursor::pg_catalog.text as cursor,
    coalesce((item).searched_to, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as searched_to
from agui.search(
    @query::pg_catalog.text, sqlc.narg(role)::pg_catalog.text, sqlc.narg(since)::pg_catalog.timestamptz, @max_rows::int, sqlc.narg(cursor)::pg_catalog.text, @marks::pg_catalog.text[], sqlc.narg(scope)::pg_catalog.text
) as item;

-- name: EnableSearch :exec
select agui.enable_search(@language::pg_catalog.text);

-- name: DisableSearch :one
select agui.disable_search()::boolean as was_on;
