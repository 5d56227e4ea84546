create or replace function agui.webhook_failures(webhook text default null, max_rows int default 1000)
returns setof agui.webhook_failure
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list the failures of webhooks');
    return query
    select
        request.webhook, request.event_id, request.kind, thread.scope, thread.thread_id, request.body -> 'data' ->> 'runId',
        request.ended_at, request.attempts, request.outcome, request.noted_at, request.next_at, request.body
    from agui_internal.webhook_request as request
    join agui.thread as thread on thread.thread_key = request.thread_key
    where request.body is not null and request.outcome is not null
        and (webhook_failures.webhook is null or request.webhook = webhook_failures.webhook)
    order by request.webhook, request.ended_at, request.event_id
    limit greatest(max_rows, 0);
end
$$;

comment on function agui.webhook_failures(text, int) is
    'Returns the requests that failed, of a webhook or (null) of all, those of the oldest ends first; '
    'max_rows null: all. next_attempt_at is null if no attempt follows. agui.retry_webhook_failures '
    'sends them at once, agui.drop_webhook_failures removes them; 30 days after the end of the run '
    'they are removed anyway. Requires agui_maintainer.';

revoke execute on function agui.webhook_failures(text, int) from public;
