create or replace function agui_internal.pool_first_key()
returns uuid
language plpgsql
stable
parallel safe
-- Every statement of a pool calls it for each table: to pin the search path would take longer than the rest. And in PL/pgSQL, for what is
-- inlined is prepared anew by each statement, of other roles too.
as $$
begin
    -- After a transaction that set it locally the setting reads '', so that is unset.
    return case
        when pg_catalog.current_setting('agui.scope', true) operator(pg_catalog.<>) ''
            then agui_internal.first_key(pg_catalog.current_setting('agui.scope', true))
    end;
end
$$;

comment on function agui_internal.pool_first_key() is
    'The least key that a thread can have of the scope that the setting agui.scope names; null: it names none.';

revoke execute on function agui_internal.pool_first_key() from public;
