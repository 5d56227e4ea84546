create type agui_internal.webhook_endpoint as (
    name       text,
    url        text,
    secret     text,
    scope      text,
    kinds      text[],
    enabled    boolean,
    created_at timestamptz,
    position   text,
    is_due     boolean,
    old_secret text,
    is_elsewhere boolean
);

comment on type agui_internal.webhook_endpoint is
    'What a worker needs to send the requests of a webhook. position: up to where agui.changes was read for it. '
    'is_due: a request is to be sent now. old_secret: signs too; null: there is none any more. '
    'is_elsewhere: another database sends them.';
