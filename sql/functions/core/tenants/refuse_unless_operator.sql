create or replace function agui_internal.refuse_unless_operator(change text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.has_row_security() and (select own.high from agui_internal.own_keys() as own) is distinct from 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        raise exception using
            errcode = '42501',
            message = format('role "%s" may not %s, because that affects all scopes', agui_internal.caller_role(), change),
            hint = 'Row-level security is on. agui.map_operator gives a role all scopes.';
    end if;
end
$$;

comment on function agui_internal.refuse_unless_operator(text) is
    'Raises 42501 for a change that affects all scopes if row-level security is on and the calling '
    'role does not have all of them.';

revoke execute on function agui_internal.refuse_unless_operator(text) from public;
