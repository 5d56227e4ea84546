create or replace function agui_internal.own_keys_in(scope text, out low uuid, out high uuid)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    select own.low, own.high into low, high from agui_internal.own_keys() as own;
    if scope is not null and low is not null then  -- greatest and least leave nulls out
        low := greatest(low, agui_internal.first_key(scope));
        high := least(high, agui_internal.last_key(scope));
        -- Not an empty range: between its ends there may be salted keys (agui_internal.erased_range).
        if low > high then
            low := null;
            high := null;
        end if;
    end if;
end
$$;

comment on function agui_internal.own_keys_in(text) is
    'The range of thread keys of a scope (null: of all scopes) that the calling role may change; nulls: '
    'none.';

revoke execute on function agui_internal.own_keys_in(text) from public;
