create or replace function agui_internal.checked_caller_role()
returns name
language plpgsql
volatile
-- Every append calls it under row-level security, and pinning the search path would take a third of
-- its time. So every name is qualified.
as $$
declare
    caller constant pg_catalog.name := agui_internal.caller_role();
begin
    -- In a security-restricted operation PostgreSQL runs the code of the owner of a table, and the
    -- session is another role's: a superuser's in autovacuum. The code may have neither its scopes
    -- nor, as nothing tells who it is, those of its owner. Only commands notice such an operation.
    -- This one fails in it (42501) and does nothing elsewhere. It does not run in a parallel query,
    -- so neither does what calls this function.
    unlisten "pgagui has no caller in a security-restricted operation";
    -- A trigger may be code of another role, too, and an action of a foreign key runs as the owner
    -- of its table.
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 0 then
        perform agui_internal.refuse_all_scopes(caller);
    end if;
    -- A front calls as one role for all who call it, unless it was made under row-level security.
    if pg_catalog.current_setting('agui.front', true) operator(pg_catalog.=) 'calls as one role' and agui_internal.has_row_security() then
        raise exception using
            errcode = '42501',
            message = 'the front was made before row-level security was turned on, so this node cannot tell who calls',
            hint = 'Run what "pgagui cluster front" prints now in the database of the front.';
    end if;
    return caller;
end
$$;

comment on function agui_internal.checked_caller_role() is
    'agui_internal.caller_role, for a decision about what it may see. 42501: PostgreSQL runs code of '
    'another role in its session, in a security-restricted operation (autovacuum, ANALYZE, REINDEX, '
    'REFRESH MATERIALIZED VIEW and their like), it has all scopes and this is a trigger, or a front '
    'carries the call that was made without row-level security.';

revoke execute on function agui_internal.checked_caller_role() from public;
