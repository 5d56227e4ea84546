create or replace function agui_internal.caller_role()
returns name
language sql
stable
parallel safe
-- Inside of functions with the rights of the owner, current_user is the owner.
return case current_setting('role') when 'none' then session_user else current_setting('role')::name end;

comment on function agui_internal.caller_role() is
    'The role that calls a function with the rights of the owner: the one set with SET ROLE, else '
    'the one that is logged in.';

revoke execute on function agui_internal.caller_role() from public;
