create or replace function agui_internal.pool_last_key()
returns uuid
language plpgsql
stable
parallel safe
-- As in agui_internal.pool_first_key.
as $$
begin
    return case
        when pg_catalog.current_setting('agui.scope', true) operator(pg_catalog.<>) ''
            then agui_internal.last_key(pg_catalog.current_setting('agui.scope', true))
    end;
end
$$;

comment on function agui_internal.pool_last_key() is
    'The greatest possible key of a thread of the scope in the setting agui.scope; null: the '
    'setting is not set.';

revoke execute on function agui_internal.pool_last_key() from public;
