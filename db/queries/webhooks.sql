-- name: AddWebhook :one
select agui.add_webhook(@name::pg_catalog.text, @url::pg_catalog.text, sqlc.narg(kinds)::pg_catalog.text[], sqlc.narg(secret)::pg_catalog.text, sqlc.narg(scope)::pg_catalog.text)::pg_catalog.text as secret;

-- name: EnableWebhook :one
select agui.enable_webhook(@name::pg_catalog.text, @enabled::boolean)::boolean as is_known;

-- name: RotateWebhookSecret :one
-- Empty: there is no such webhook.
select coalesce(agui.rotate_webhook_secret(@name::pg_catalog.text, sqlc.narg(secret)::pg_catalog.text, @keep_old::interval), '')::pg_catalog.text as secret;

-- name: TakeOverWebhooks :one
select agui.take_over_webhooks(sqlc.narg(name)::pg_catalog.text)::bigint as taken;

-- name: RemoveWebhook :one
select agui.remove_webhook(@name::pg_catalog.text)::boolean as was_known;

-- name: Webhooks :many
select
    (hook).name::pg_catalog.text as name, (hook).url::pg_catalog.text as url, coalesce((hook).scope, '')::pg_catalog.text as scope, ((hook).scope is null)::boolean as is_all,
    (hook).kinds::pg_catalog.text[] as kinds, (hook).enabled::boolean as enabled, coalesce((hook).disabled_because, '')::pg_catalog.text as disabled_because,
    (hook).created_at::pg_catalog.timestamptz as created_at, (hook).created_by::pg_catalog.text as created_by, (hook).to_send::bigint as to_send, (hook).failed::bigint as failed,
    (hook).retrying::bigint as retrying, coalesce((hook).old_secret_until, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as old_secret_until,
    (hook).is_elsewhere::boolean as is_elsewhere
from agui.webhooks() as hook;

-- name: WebhookFailures :many
select
    (request).webhook::pg_catalog.text as webhook, (request).event_id::pg_catalog.text as event_id, (request).kind::pg_catalog.text as kind, (request).scope::pg_catalog.text as scope,
    (request).thread_id::pg_catalog.text as thread_id, (request).run_id::pg_catalog.text as run_id, (request).ended_at::pg_catalog.timestamptz as ended_at,
    (request).attempts::int as attempts, coalesce((request).outcome, '')::pg_catalog.text as outcome, (request).failed_at::pg_catalog.timestamptz as failed_at,
    coalesce((request).next_attempt_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as next_attempt_at
from agui.webhook_failures(sqlc.narg(webhook)::pg_catalog.text, @max_rows::int) as request;

-- name: RetryWebhookFailures :one
select agui.retry_webhook_failures(@webhook::pg_catalog.text, sqlc.narg(event_id)::pg_catalog.text)::bigint as retried;

-- name: DropWebhookFailures :one
select agui.drop_webhook_failures(@webhook::pg_catalog.text, sqlc.narg(event_id)::pg_catalog.text)::bigint as dropped;

-- name: WebhookEndpoints :many
select
    (endpoint).name::pg_catalog.text as name, (endpoint).url::pg_catalog.text as url, (endpoint).secret::pg_catalog.text as secret, coalesce((endpoint).scope, '')::pg_catalog.text as scope,
    ((endpoint).scope is null)::boolean as is_all, (endpoint).enabled::boolean as enabled,
    (endpoint).created_at::pg_catalog.timestamptz as created_at, (endpoint).position::pg_catalog.text as position, (endpoint).is_due::boolean as is_due,
    coalesce((endpoint).old_secret, '')::pg_catalog.text as old_secret, (endpoint).is_elsewhere::boolean as is_elsewhere
from agui_internal.webhook_endpoints(@at::pg_catalog.timestamptz) as endpoint;

-- name: AddWebhookRequests :one
-- False: another worker has moved the position.
select agui_internal.add_webhook_requests(
    @webhook::pg_catalog.text, @after::pg_catalog.text, @position::pg_catalog.text, @scopes::pg_catalog.text[], @thread_ids::pg_catalog.text[], @run_ids::pg_catalog.text[]
)::boolean as is_moved;

-- name: ClaimWebhookRequests :many
select (request).event_id::pg_catalog.text as event_id, (request).kind::pg_catalog.text as kind, (request).body::pg_catalog.json as body, (request).attempts::int as attempts
from agui_internal.claim_webhook_requests(@webhook::pg_catalog.text, @at::pg_catalog.timestamptz, @until::pg_catalog.timestamptz, @max_rows::int) as request;

-- name: NoteWebhookRequest :exec
select agui_internal.note_webhook_request(
    @webhook::pg_catalog.text, @event_id::pg_catalog.text, @attempts::int, @is_sent::boolean, sqlc.narg(next_at)::pg_catalog.timestamptz, @outcome::pg_catalog.text, @is_gone::boolean
);
