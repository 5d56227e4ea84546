-- name: SetHold :one
select (held).reason::pg_catalog.text as reason, (held).held_at::pg_catalog.timestamptz as held_at, (held).held_by::pg_catalog.text as held_by
from agui.set_hold(@thread_id::pg_catalog.text, @reason::pg_catalog.text, @scope::pg_catalog.text) as held;

-- name: LiftHold :one
select agui.lift_hold(@thread_id::pg_catalog.text, @scope::pg_catalog.text)::boolean as was_held;

-- name: Holds :many
select held.scope::pg_catalog.text as scope, held.thread_id::pg_catalog.text as thread_id, held.reason::pg_catalog.text as reason, held.held_at::pg_catalog.timestamptz as held_at, held.held_by::pg_catalog.text as held_by
from agui.held_thread as held
where held.scope operator(pg_catalog.=) @scope::pg_catalog.text
order by held.held_at, held.thread_key;

-- name: SetRetention :exec
select agui.set_retention(@action::pg_catalog.text, (sqlc.narg(older_than)::pg_catalog.text)::interval, sqlc.narg(scope)::pg_catalog.text);

-- name: RemoveRetention :one
select agui.remove_retention(@action::pg_catalog.text, sqlc.narg(scope)::pg_catalog.text)::boolean as was_set;

-- name: RetentionRules :many
select rule.scope, rule.is_all, rule.action, coalesce(rule.older_than::pg_catalog.text, '')::pg_catalog.text as older_than, rule.set_at, rule.set_by
from agui.retention as rule
order by rule.action, not rule.is_all, rule.scope;

-- name: ThreadsDue :many
-- A page of threads in the order of their keys, a row for each action that is due.
select
    (due).thread_key::pg_catalog.uuid as thread_key, (due).scope::pg_catalog.text as scope, (due).thread_id::pg_catalog.text as thread_id, (due).action::pg_catalog.text as action,
    (due).older_than::pg_catalog.text as older_than, (due).is_all::boolean as is_all, (due).last_news_at::pg_catalog.timestamptz as last_news_at,
    (due).events::bigint as events, (due).log_bytes::bigint as log_bytes, coalesce((due).kept_because, '')::pg_catalog.text as kept_because
from agui_internal.threads_due(sqlc.narg(after)::pg_catalog.uuid, @page::int) as due;

-- name: RetainThread :one
select agui_internal.retain_thread(@thread_key::pg_catalog.uuid, @action::pg_catalog.text)::boolean as is_done;
