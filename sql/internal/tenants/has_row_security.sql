create or replace function agui_internal.has_row_security()
returns boolean
language sql
stable
parallel safe
-- The planner puts the constant into the statements that ask for it: so a check costs nothing while row-level security is off.
-- agui_internal.set_row_security replaces the function, and PostgreSQL then plans these statements anew. Not so for an immutable
-- function, whose value it would keep.
return false;

comment on function agui_internal.has_row_security() is
    'Whether row-level security is on. agui.enable_row_security() and agui.disable_row_security() replace this function.';

revoke execute on function agui_internal.has_row_security() from public;
