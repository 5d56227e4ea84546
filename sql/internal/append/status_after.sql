create or replace function agui_internal.status_after(last_event_type text)
returns text
language sql
immutable
parallel safe
return case last_event_type when 'RUN_FINISHED' then 'finished' when 'RUN_ERROR' then 'failed' else 'running' end;

comment on function agui_internal.status_after(text) is
    'The status of a run after a life-cycle event of this type (null: the run has only begun).';

revoke execute on function agui_internal.status_after(text) from public;
