create type agui_internal.webhook_state as (
    name       text,
    enabled    boolean,
    disabled_because text,
    to_send    bigint,
    retrying   bigint,
    failed     bigint,
    is_elsewhere boolean
);

comment on type agui_internal.webhook_state is 'How a webhook does, as in agui.webhook_info.';
