create or replace function agui_internal.webhook_event_id(run agui.run, kind text)
returns text
language sql
stable
parallel safe
return 'evt_' || left(encode(sha256(convert_to(
    concat_ws('/', run.thread_key, run.run_no, extract(epoch from run.started_at), run.end_seq, kind), 'UTF8'
)), 'hex'), 32);

comment on function agui_internal.webhook_event_id(agui.run, text) is
    'The id of the requests about the end of a run (agui_internal.webhook_request).';

revoke execute on function agui_internal.webhook_event_id(agui.run, text) from public;
