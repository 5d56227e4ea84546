create or replace function agui_internal.own_erased_keys(out low uuid, out high uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        case
            when own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then own.low
            else (left(agui_internal.erasure_key(own.low)::text, 18) || '-0000-000000000000')::uuid
        end,
        case
            when own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then own.high
            else (left(agui_internal.erasure_key(own.high)::text, 18) || '-ffff-ffffffffffff')::uuid
        end
    from agui_internal.own_keys() as own
$$;

comment on function agui_internal.own_erased_keys() is
    'The range of keys in agui.erasure of the threads that the calling role may change: all '
    'without row-level security; nulls: none. The first half of a key there depends on the scope '
    'only.';

revoke execute on function agui_internal.own_erased_keys() from public;
