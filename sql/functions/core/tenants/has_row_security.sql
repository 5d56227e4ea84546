create or replace function agui_internal.has_row_security()
returns boolean
language sql
stable
parallel safe
-- The planner inlines the constant into the calling statements, so a check costs nothing while
-- row-level security is off. agui_internal.set_row_security replaces the function, and PostgreSQL
-- then replans these statements. With an immutable function it would not, and keep the value.
return false;

comment on function agui_internal.has_row_security() is
    'Whether row-level security is on. agui.enable_row_security() and agui.disable_row_security() replace this function.';

revoke execute on function agui_internal.has_row_security() from public;
