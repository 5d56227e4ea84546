create or replace function agui.drop_webhook_failures(webhook text, event_id text default null)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    dropped bigint;
begin
    perform agui_internal.refuse_unless_operator('drop the failures of a webhook');
    -- The row stays, so that the end is not sent once more.
    update agui_internal.webhook_request as request
    set body = null, next_at = null
    where request.webhook = drop_webhook_failures.webhook
        and (drop_webhook_failures.event_id is null or request.event_id = drop_webhook_failures.event_id)
        and request.body is not null and request.outcome is not null;
    get diagnostics dropped = row_count;
    return dropped;
end
$$;

comment on function agui.drop_webhook_failures(text, text) is
    'Removes requests from agui.webhook_failures(): one, or (null) all of the webhook. They are not '
    'sent any more. Returns how many. Requires agui_maintainer.';

revoke execute on function agui.drop_webhook_failures(text, text) from public;
