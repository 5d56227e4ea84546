-- Endpoints that get an HTTP request when a run has ended or waits, and the requests.

create table agui.webhook (
    name       text primary key,
    url        text not null,
    scope      text,
    kinds      text[] not null,
    secret     text not null,
    enabled    boolean not null default true,
    disabled_because text,
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null default session_user,
    constraint webhook_name_is_short check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$'),
    constraint webhook_url_is_http check (url ~ '^https?://[^[:space:]]+$'),
    constraint webhook_kinds_are_known check (
        cardinality(kinds) > 0 and kinds <@ array['run.finished', 'run.failed', 'run.cancelled', 'run.waiting']
    ),
    constraint webhook_secret_has_the_form check (
        case when secret ~ '^whsec_[A-Za-z0-9+/]+=*$' then octet_length(decode(substr(secret, 7), 'base64')) between 24 and 64 else false end
    ),
    constraint webhook_says_why_it_is_disabled check (not enabled or disabled_because is null)
);

comment on table agui.webhook is
    'Endpoints that get an HTTP POST when a run has ended or waits for an answer (agui.add_webhook). '
    'The worker sends it. Only the owner can read the table, for it has secrets: agui.webhooks() '
    'shows the rest.';
comment on column agui.webhook.name is 'The name of the webhook.';
comment on column agui.webhook.url is 'Where the requests go.';
comment on column agui.webhook.scope is 'The scope whose runs it is for; null: all scopes.';
comment on column agui.webhook.kinds is
    'run.finished, run.failed (also runs that were cut off), run.cancelled, run.waiting (it ended with '
    'an interrupt).';
comment on column agui.webhook.secret is
    'The key of the signatures, as Standard Webhooks has it: whsec_, then 24 to 64 bytes in base64.';
comment on column agui.webhook.enabled is
    'Whether requests are sent. If not, what happens meanwhile is sent once it is enabled again.';
comment on column agui.webhook.disabled_because is 'Why it is disabled; null: agui.enable_webhook did it.';
comment on column agui.webhook.created_at is 'When it was added. Runs that ended before are not sent.';
comment on column agui.webhook.created_by is 'The role that was logged in.';

create table agui_internal.webhook_position (
    webhook  text primary key references agui.webhook on delete cascade,
    position text not null,
    read_at  timestamptz not null default clock_timestamp()
);

comment on table agui_internal.webhook_position is
    'How far the worker has read agui.changes for each webhook.';
comment on column agui_internal.webhook_position.webhook is 'Name of the webhook.';
comment on column agui_internal.webhook_position.position is
    'Behind the changes whose requests are in agui_internal.webhook_request.';
comment on column agui_internal.webhook_position.read_at is 'When there was last a change.';

create table agui_internal.webhook_request (
    webhook    text not null references agui.webhook on delete cascade,
    event_id   text not null,
    thread_key uuid not null,
    kind       text not null,
    ended_at   timestamptz not null,
    body       json,
    attempts   int not null default 0,
    next_at    timestamptz,
    outcome    text,
    noted_at   timestamptz not null default clock_timestamp(),
    primary key (webhook, event_id),
    constraint webhook_request_has_a_body_to_send check (next_at is null or body is not null)
);

create index webhook_request_due on agui_internal.webhook_request (webhook, next_at) where next_at is not null;
create index webhook_request_failed on agui_internal.webhook_request (webhook, ended_at) where body is not null and outcome is not null;
create index webhook_request_by_thread on agui_internal.webhook_request (thread_key);
create index webhook_request_by_time on agui_internal.webhook_request (ended_at);

comment on table agui_internal.webhook_request is
    'The requests of webhooks, one for each end of a run: those to send (next_at is set), those that '
    'were sent (body is null), and those that failed for good (neither). A row stays for 30 days '
    'after the end, so that no end is sent twice. agui.webhook_failures() shows those that failed.';
comment on column agui_internal.webhook_request.webhook is 'Name of the webhook.';
comment on column agui_internal.webhook_request.event_id is
    'The header webhook-id: a hash of the run and its end, so that it is the same for each attempt, '
    'and for each webhook.';
comment on column agui_internal.webhook_request.kind is 'As in agui.webhook.kinds.';
comment on column agui_internal.webhook_request.ended_at is 'When the last end of the run was recorded.';
comment on column agui_internal.webhook_request.body is 'The body of the request; null: it was sent.';
comment on column agui_internal.webhook_request.attempts is 'How often it was begun to be sent.';
comment on column agui_internal.webhook_request.next_at is
    'When it is sent next. While a worker is sending it: when another one may, should the first have '
    'died. Null: it was sent, or failed for good.';
comment on column agui_internal.webhook_request.outcome is
    'What came of the last attempt, for example 503 Service Unavailable; null: none has ended.';
comment on column agui_internal.webhook_request.noted_at is 'When the last attempt began or ended.';
comment on index agui_internal.webhook_request_due is 'The queue of requests.';
comment on index agui_internal.webhook_request_failed is 'What agui.webhook_failures() shows.';
comment on index agui_internal.webhook_request_by_thread is 'The requests that go with an erased thread.';
comment on index agui_internal.webhook_request_by_time is 'The requests that are old enough to be forgotten.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui.webhook
    alter column name set statistics 0,
    alter column url set statistics 0,
    alter column scope set statistics 0,
    alter column kinds set statistics 0,
    alter column secret set statistics 0,
    alter column disabled_because set statistics 0,
    alter column created_by set statistics 0;
alter table agui_internal.webhook_position
    alter column webhook set statistics 0,
    alter column position set statistics 0;
alter table agui_internal.webhook_request
    alter column webhook set statistics 0,
    alter column event_id set statistics 0,
    alter column kind set statistics 0,
    alter column outcome set statistics 0;
