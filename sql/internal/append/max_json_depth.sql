create or replace function agui_internal.max_json_depth()
returns int
language sql
immutable
parallel safe
return 1000;

comment on function agui_internal.max_json_depth() is 'How deep arrays and objects of an event or an input may be nested.';

revoke execute on function agui_internal.max_json_depth() from public;
