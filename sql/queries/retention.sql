-- name: SetHold :one
select (held).reason::text as reason, (held).held_at::timestamptz as held_at, (held).held_by::text as held_by
from agui.set_hold(@thread_id::text, @reason::text, @scope::text) as held;

-- name: LiftHold :one
select agui.lift_hold(@thread_id::text, @scope::text)::boolean as was_held;

-- name: Holds :many
select held.scope::text as scope, held.thread_id::text as thread_id, held.reason::text as reason, held.held_at::timestamptz as held_at, held.held_by::text as held_by
from agui.held_thread as held
where held.scope = @scope::text
order by held.held_at, held.thread_key;

-- name: SetRetention :exec
select agui.set_retention(@action::text, (sqlc.narg(older_than)::text)::interval, sqlc.narg(scope)::text);

-- name: RemoveRetention :one
select agui.remove_retention(@action::text, sqlc.narg(scope)::text)::boolean as was_set;

-- name: RetentionRules :many
select rule.scope, rule.is_all, rule.action, coalesce(rule.older_than::text, '')::text as older_than, rule.set_at, rule.set_by
from agui.retention as rule
order by rule.action, not rule.is_all, rule.scope;

-- name: ThreadsDue :many
-- A page of threads in the order of their keys, a row for each action that is due.
select
    (due).thread_key::uuid as thread_key, (due).scope::text as scope, (due).thread_id::text as thread_id, (due).action::text as action,
    (due).older_than::text as older_than, (due).is_all::boolean as is_all, (due).last_news_at::timestamptz as last_news_at,
    (due).events::bigint as events, (due).log_bytes::bigint as log_bytes, coalesce((due).kept_because, '')::text as kept_because
from agui_internal.threads_due(sqlc.narg(after)::uuid, @page::int) as due;

-- name: RetainThread :one
select agui_internal.retain_thread(@thread_key::uuid, @action::text)::boolean as is_done;
