create or replace function agui_internal.pool_first_key()
returns uuid
language plpgsql
stable
parallel safe
-- Every statement of a pool calls it for each table, and pinning the search path would take longer
-- than the rest. In PL/pgSQL, because an inlined function is prepared by each statement, those of
-- other roles too.
as $$
begin
    -- After a transaction that set it locally, the setting reads '', so '' counts as unset.
    return case
        when pg_catalog.current_setting('agui.scope', true) operator(pg_catalog.<>) ''
            then agui_internal.first_key(pg_catalog.current_setting('agui.scope', true))
    end;
end
$$;

comment on function agui_internal.pool_first_key() is
    'The smallest possible key of a thread of the scope in the setting agui.scope; null: the '
    'setting is not set.';

revoke execute on function agui_internal.pool_first_key() from public;
