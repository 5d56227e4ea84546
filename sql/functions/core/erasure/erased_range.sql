create or replace function agui_internal.erased_range(inout low uuid, inout high uuid)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if low <> '00000000-0000-0000-0000-000000000000' or high <> 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        low := (left(agui_internal.erasure_key(low)::text, 18) || '-0000-000000000000')::uuid;
        high := (left(agui_internal.erasure_key(high)::text, 18) || '-ffff-ffffffffffff')::uuid;
    end if;
end
$$;

comment on function agui_internal.erased_range(uuid, uuid) is
    'The range of keys in agui.erasure for the range of keys of all threads, or of those of a scope; '
    'nulls: none. The first half of a key there depends on the scope only. For the owner only, as '
    'agui_internal.erasure_key.';

revoke execute on function agui_internal.erased_range(uuid, uuid) from public;
