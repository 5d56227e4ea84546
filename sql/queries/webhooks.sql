-- name: AddWebhook :one
select agui.add_webhook(@name::text, @url::text, sqlc.narg(kinds)::text[], sqlc.narg(secret)::text, sqlc.narg(scope)::text)::text as secret;

-- name: EnableWebhook :one
select agui.enable_webhook(@name::text, @enabled::boolean)::boolean as is_known;

-- name: RotateWebhookSecret :one
-- Empty: there is no such webhook.
select coalesce(agui.rotate_webhook_secret(@name::text, sqlc.narg(secret)::text, @keep_old::interval), '')::text as secret;

-- name: TakeOverWebhooks :one
select agui.take_over_webhooks(sqlc.narg(name)::text)::bigint as taken;

-- name: RemoveWebhook :one
select agui.remove_webhook(@name::text)::boolean as was_known;

-- name: Webhooks :many
select
    (hook).name::text as name, (hook).url::text as url, coalesce((hook).scope, '')::text as scope, ((hook).scope is null)::boolean as is_all,
    (hook).kinds::text[] as kinds, (hook).enabled::boolean as enabled, coalesce((hook).disabled_because, '')::text as disabled_because,
    (hook).created_at::timestamptz as created_at, (hook).created_by::text as created_by, (hook).to_send::bigint as to_send, (hook).failed::bigint as failed,
    (hook).retrying::bigint as retrying, coalesce((hook).old_secret_until, '0001-01-01 00:00:00+00')::timestamptz as old_secret_until,
    (hook).is_elsewhere::boolean as is_elsewhere
from agui.webhooks() as hook;

-- name: WebhookFailures :many
select
    (request).webhook::text as webhook, (request).event_id::text as event_id, (request).kind::text as kind, (request).scope::text as scope,
    (request).thread_id::text as thread_id, (request).run_id::text as run_id, (request).ended_at::timestamptz as ended_at,
    (request).attempts::int as attempts, coalesce((request).outcome, '')::text as outcome, (request).failed_at::timestamptz as failed_at,
    coalesce((request).next_attempt_at, '0001-01-01 00:00:00+00')::timestamptz as next_attempt_at
from agui.webhook_failures(sqlc.narg(webhook)::text, @max_rows::int) as request;

-- name: RetryWebhookFailures :one
select agui.retry_webhook_failures(@webhook::text, sqlc.narg(event_id)::text)::bigint as retried;

-- name: DropWebhookFailures :one
select agui.drop_webhook_failures(@webhook::text, sqlc.narg(event_id)::text)::bigint as dropped;

-- name: WebhookEndpoints :many
select
    (endpoint).name::text as name, (endpoint).url::text as url, (endpoint).secret::text as secret, coalesce((endpoint).scope, '')::text as scope,
    ((endpoint).scope is null)::boolean as is_all, (endpoint).enabled::boolean as enabled,
    (endpoint).created_at::timestamptz as created_at, (endpoint).position::text as position, (endpoint).is_due::boolean as is_due,
    coalesce((endpoint).old_secret, '')::text as old_secret, (endpoint).is_elsewhere::boolean as is_elsewhere
from agui_internal.webhook_endpoints(@at::timestamptz) as endpoint;

-- name: AddWebhookRequests :one
-- False: another worker has moved the position.
select agui_internal.add_webhook_requests(
    @webhook::text, @after::text, @position::text, @scopes::text[], @thread_ids::text[], @run_ids::text[]
)::boolean as is_moved;

-- name: ClaimWebhookRequests :many
select (request).event_id::text as event_id, (request).kind::text as kind, (request).body::json as body, (request).attempts::int as attempts
from agui_internal.claim_webhook_requests(@webhook::text, @at::timestamptz, @until::timestamptz, @max_rows::int) as request;

-- name: NoteWebhookRequest :exec
select agui_internal.note_webhook_request(
    @webhook::text, @event_id::text, @attempts::int, @is_sent::boolean, sqlc.narg(next_at)::timestamptz, @outcome::text, @is_gone::boolean
);
