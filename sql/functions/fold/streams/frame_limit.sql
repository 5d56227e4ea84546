create or replace function agui_internal.frame_limit()
returns int
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return 10485760 - 1024;

comment on function agui_internal.frame_limit() is
    'The size of the largest event that every client takes, in units of UTF-16: @ag-ui/client 1.0.0 '
    'gives up on a frame of more than 10 MiB, and a frame holds a little more than its event.';

revoke execute on function agui_internal.frame_limit() from public;
