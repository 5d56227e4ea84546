create or replace function agui_internal.claim_webhook_requests(webhook text, at timestamptz, until timestamptz, max_rows int)
returns setof agui_internal.claimed_request
language plpgsql
volatile
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    return query
    update agui_internal.webhook_request as claimed
    set attempts = claimed.attempts + 1, next_at = until, noted_at = clock_timestamp()
    from (
        select request.webhook, request.event_id
        from agui_internal.webhook_request as request
        join agui.webhook as known
            on known.name = request.webhook and known.enabled and known.sends_from = agui_internal.database_identity()
        where request.webhook = claim_webhook_requests.webhook and request.next_at <= at
        order by request.next_at
        limit max_rows
        for update of request skip locked
    ) as due
    where claimed.webhook = due.webhook and claimed.event_id = due.event_id
    returning claimed.event_id, claimed.kind, claimed.body, claimed.attempts;
end
$$;

comment on function agui_internal.claim_webhook_requests(text, timestamptz, timestamptz, int) is
    'Takes requests of a webhook that are due at a time, the longest due first, so that no other '
    'worker sends them until another time. None if another database sends them.';

revoke execute on function agui_internal.claim_webhook_requests(text, timestamptz, timestamptz, int) from public;
