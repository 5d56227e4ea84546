create or replace function agui_internal.repack_after()
returns interval
language sql
stable
parallel safe
return coalesce(nullif(current_setting('agui.repack_after', true), ''), '10 minutes')::interval;

comment on function agui_internal.repack_after() is
    'How long ago a run must have ended before its batches are joined: the setting '
    'agui.repack_after, by default 10 minutes.';

revoke execute on function agui_internal.repack_after() from public;
