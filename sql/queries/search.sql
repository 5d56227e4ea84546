-- name: Search :many
select
    (item).scope::text as scope,
    (item).thread_id::text as thread_id,
    (item).run_id::text as run_id,
    coalesce((item).message_id, '')::text as message_id,
    (item).role::text as role,
    (item).seq::bigint as seq,
    (item).said_at::timestamptz as said_at,
    (item).rank::real as rank,
    (item).snippet::text as snippet,
    (item).cursor::text as cursor,
    coalesce((item).searched_to, '0001-01-01 00:00:00+00')::timestamptz as searched_to
from agui.search(
    @query::text, sqlc.narg(role)::text, sqlc.narg(since)::timestamptz, @max_rows::int, sqlc.narg(cursor)::text, @marks::text[], sqlc.narg(scope)::text
) as item;

-- name: EnableSearch :exec
select agui.enable_search(@language::text);

-- name: DisableSearch :one
select agui.disable_search()::boolean as was_on;
