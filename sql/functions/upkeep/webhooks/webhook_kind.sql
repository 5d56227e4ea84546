create or replace function agui_internal.webhook_kind(status text)
returns text
language sql
immutable
parallel safe
return case status
    when 'finished' then 'run.finished'
    when 'cancelled' then 'run.cancelled'
    when 'interrupted' then 'run.waiting'
    when 'failed' then 'run.failed'
    when 'cut_off' then 'run.failed'
end;

comment on function agui_internal.webhook_kind(text) is
    'The kind (agui.webhook.kinds) of what a run with this status reports; null: it is in progress.';

revoke execute on function agui_internal.webhook_kind(text) from public;
