create or replace function agui_internal.caller_role()
returns name
language sql
stable
parallel safe
-- current_user is the owner inside of functions that have its rights.
return case current_setting('role') when 'none' then session_user else current_setting('role')::name end;

comment on function agui_internal.caller_role() is
    'The role that calls a function with the rights of the owner: the one that SET ROLE has set, else the one that is logged in.';

revoke execute on function agui_internal.caller_role() from public;
