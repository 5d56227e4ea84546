create or replace function agui_internal.own_erased_keys(out low uuid, out high uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select erased.low, erased.high
    from agui_internal.own_keys() as own
    cross join lateral agui_internal.erased_range(own.low, own.high) as erased
$$;

comment on function agui_internal.own_erased_keys() is
    'The range of keys in agui.erasure of the threads that the calling role may change: all '
    'without row-level security; nulls: none.';

revoke execute on function agui_internal.own_erased_keys() from public;
