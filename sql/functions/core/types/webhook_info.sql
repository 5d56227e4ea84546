create type agui.webhook_info as (
    name       text,
    url        text,
    scope      text,
    kinds      text[],
    enabled    boolean,
    disabled_because text,
    created_at timestamptz,
    created_by text,
    to_send    bigint,
    failed     bigint,
    retrying   bigint,
    old_secret_until timestamptz,
    is_elsewhere boolean
);

comment on type agui.webhook_info is
    'A webhook (agui.webhook) without its secret. scope: null means all scopes. to_send is the number '
    'of requests that wait or are being sent, failed the number of those that failed for good, '
    'retrying that of those that failed and are repeated. old_secret_until: until when the secret before '
    'agui.rotate_webhook_secret signs too; null: there is none. is_elsewhere: another database sends the '
    'requests, of which this one is a copy (agui.take_over_webhooks).';
