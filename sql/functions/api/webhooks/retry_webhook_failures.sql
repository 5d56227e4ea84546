create or replace function agui.retry_webhook_failures(webhook text, event_id text default null)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    retried bigint;
begin
    perform agui_internal.refuse_unless_operator('retry a webhook');
    update agui_internal.webhook_request as request
    set attempts = 0, next_at = clock_timestamp(), outcome = null
    where request.webhook = retry_webhook_failures.webhook
        and (retry_webhook_failures.event_id is null or request.event_id = retry_webhook_failures.event_id)
        and request.body is not null and request.outcome is not null;
    get diagnostics retried = row_count;
    return retried;
end
$$;

comment on function agui.retry_webhook_failures(text, text) is
    'Makes requests of agui.webhook_failures() due at once, with as many attempts as at first: one, or '
    '(null) all of the webhook. Returns how many. Requires agui_maintainer.';

revoke execute on function agui.retry_webhook_failures(text, text) from public;
