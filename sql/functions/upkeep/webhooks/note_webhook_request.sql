create or replace function agui_internal.note_webhook_request(
    webhook text, event_id text, attempts int, is_sent boolean, next_at timestamptz, outcome text, is_gone boolean
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('send webhooks');
    update agui_internal.webhook_request as request
    set body = case when not is_sent then request.body end,
        next_at = case when not is_sent then note_webhook_request.next_at end,
        outcome = note_webhook_request.outcome,
        noted_at = clock_timestamp()
    where request.webhook = note_webhook_request.webhook and request.event_id = note_webhook_request.event_id
        -- A failure counts only if nobody has begun it meanwhile.
        and (is_sent or request.attempts = note_webhook_request.attempts and request.next_at is not null);
    if is_gone then
        update agui.webhook as known
        set enabled = false, disabled_because = 'the endpoint answered ' || note_webhook_request.outcome
        where known.name = note_webhook_request.webhook and known.enabled;
    end if;
end
$$;

comment on function agui_internal.note_webhook_request(text, text, int, boolean, timestamptz, text, boolean) is
    'Notes what came of an attempt: the request was sent, or is due once more at next_at, or (null) '
    'has failed for good. is_gone: the endpoint wants no more requests, so the webhook is disabled. '
    'attempts: as claimed.';

revoke execute on function agui_internal.note_webhook_request(text, text, int, boolean, timestamptz, text, boolean) from public;
