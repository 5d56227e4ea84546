create or replace function agui_internal.max_call_bytes()
returns int
language sql
immutable
parallel safe
return 64 * 1024 * 1024;

comment on function agui_internal.max_call_bytes() is
    'The maximum size in bytes of the events and inputs of one call of agui.append or '
    'agui.append_many.';

revoke execute on function agui_internal.max_call_bytes() from public;
