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
    failed     bigint
);

comment on type agui.webhook_info is
    'A webhook (agui.webhook) without its secret. scope: null means all scopes. to_send is the number '
    'of requests that wait or are being sent, failed the number of those that failed for good.';
