create or replace function agui_internal.pool_last_key()
returns uuid
language plpgsql
stable
parallel safe
-- As agui_internal.pool_first_key.
as $$
begin
    return case
        when pg_catalog.current_setting('agui.scope', true) operator(pg_catalog.<>) ''
            then agui_internal.last_key(pg_catalog.current_setting('agui.scope', true))
    end;
end
$$;

comment on function agui_internal.pool_last_key() is
    'The greatest key that a thread can have of the scope that the setting agui.scope names; null: it names none.';

revoke execute on function agui_internal.pool_last_key() from public;
