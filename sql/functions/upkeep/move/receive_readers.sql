create or replace function agui_internal.receive_readers(thread_key uuid, readers json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    insert into agui_internal.consumer_thread as consumed (thread_key, consumer_key, read_seq)
    select receive_readers.thread_key, known.consumer_key, mark.read_seq
    from json_to_recordset(readers -> 'marks') as mark (scope text, is_all boolean, consumer text, read_seq bigint)
    join agui.consumer as known
        on known.scope = mark.scope and known.is_all = mark.is_all and known.consumer = mark.consumer;
    -- The node that the thread comes from still sends those that wait there. Here they count as sent.
    insert into agui_internal.webhook_request as request (webhook, event_id, thread_key, kind, ended_at, body, attempts, outcome, noted_at)
    select
        noted.webhook, noted.event_id, noted.thread_key, noted.kind, noted.ended_at,
        case when noted.next_at is null then noted.body end, noted.attempts, noted.outcome, noted.noted_at
    from json_populate_recordset(null::agui_internal.webhook_request, readers -> 'requests') as noted
    join agui.webhook as known
        on known.name = noted.webhook
    on conflict on constraint webhook_request_pkey do nothing;
end
$$;

comment on function agui_internal.receive_readers(uuid, json) is
    'Takes over what consumers and webhooks have noted of a thread on another node '
    '(agui_internal.readers_of_thread), for those that this node has too. So no event is processed '
    'twice, and no end of a run is sent twice.';

revoke execute on function agui_internal.receive_readers(uuid, json) from public;
