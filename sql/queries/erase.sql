-- name: Erase :one
select (erasure).runs::int as runs, (erasure).events::bigint as events
from agui.erase(@thread_id::text, sqlc.narg(reason)::text, @scope::text) as erasure;

-- name: LiftErasure :one
select agui.lift_erasure(@thread_id::text, @scope::text)::boolean as was_erased;

-- name: ThreadsWithoutNews :many
select
    (thread).thread_key::uuid as thread_key, (thread).scope::text as scope, (thread).thread_id::text as thread_id,
    (thread).last_news_at::timestamptz as last_news_at, (thread).events::bigint as events,
    exists (select from agui.held_thread as held where held.thread_key = (thread).thread_key)::boolean as is_held
from agui_internal.inactive_threads(@older_than::interval, sqlc.narg(scope)::text, sqlc.narg(after)::uuid, @page::int) as thread;

-- name: EraseThread :one
-- No row: the thread is gone, or has become active.
select (erasure).runs::int as runs, (erasure).events::bigint as events
from agui_internal.erase_thread(@thread_key::uuid, sqlc.narg(reason)::text, sqlc.narg(older_than)::interval) as erasure
where (erasure).erased_key is not null;
