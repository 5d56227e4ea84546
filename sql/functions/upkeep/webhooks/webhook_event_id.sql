create or replace function agui_internal.webhook_event_id(thread_key uuid, run_no int, started_at timestamptz, end_seq bigint, kind text)
returns text
language sql
stable
parallel safe
return 'evt_' || left(encode(sha256(convert_to(
    concat_ws('/', thread_key, run_no, extract(epoch from started_at), end_seq, kind), 'UTF8'
)), 'hex'), 32);

comment on function agui_internal.webhook_event_id(uuid, int, timestamptz, bigint, text) is
    'The id of the requests about the end of a run (agui_internal.webhook_request).';

revoke execute on function agui_internal.webhook_event_id(uuid, int, timestamptz, bigint, text) from public;
