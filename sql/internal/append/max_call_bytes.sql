create or replace function agui_internal.max_call_bytes()
returns int
language sql
immutable
parallel safe
return 64 * 1024 * 1024;

comment on function agui_internal.max_call_bytes() is 'How many bytes of events and inputs one call of agui.append or agui.append_many takes at most.';

revoke execute on function agui_internal.max_call_bytes() from public;
