create or replace function agui_internal.max_json_depth()
returns int
language sql
immutable
parallel safe
return 1000;

comment on function agui_internal.max_json_depth() is
    'The maximum nesting depth of arrays and objects in an event or an input.';

revoke execute on function agui_internal.max_json_depth() from public;
